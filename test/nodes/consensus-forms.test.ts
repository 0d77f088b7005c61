// What the reference nodes accept although nobody makes it: each must be read, because an unread block stops its currency. Variations of
// each chain's own forms by their rules; unknown forms are in unknown-forms. A failing seed is printed.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { readBlockBytes } from '../../src/outside/utxo/block.ts';
import { readTransactionBytes } from '../../src/outside/utxo/transaction.ts';
import { p2pkh, rawBlock, rawPayment, rawTransaction, type Sealed } from '../support/raw-blocks.ts';
import { compactSize, hash256, i32, i64, u32, varBytes } from '../support/raw-bytes.ts';
import { CODES, coinbase, features, ours, watch } from './watched-forms.ts';

vi.setConfig({ testTimeout: 60_000 });
const RUNS = 200;
const read = (code: UtxoCode, block: { bytes: Buffer; hash: string }) =>
  readBlockBytes(block.bytes, block.hash, features(code), watch);
const paidOnce = [{ outputs: [{ vout: 0, script: ours.toString('hex'), amountMinor: 38_462n }] }];
const bytesOf = (maxLength: number) => fc.uint8Array({ maxLength }).map((one) => Buffer.from(one));
const hash32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((one) => Buffer.from(one));
const amount = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

describe('merged mining (DOGE)', () => {
  // CAuxPow::check asks of the parent's first transaction only where its script holds the commitment, and of its branch nothing
  const parent = fc.record({
    version: fc.integer(),
    prevout: fc.tuple(hash32, fc.nat(0xffffffff)),
    nullPrevouts: fc.nat(3),
    script: bytesOf(300),
    outputs: fc.array(fc.record({ minor: amount, script: bytesOf(60) }), { maxLength: 4 }),
    witness: fc.option(fc.array(bytesOf(40), { minLength: 1, maxLength: 3 })),
  });
  test('whatever the parent’s coinbase and the branches look like', () => {
    fc.assert(
      fc.property(parent, fc.array(hash32, { maxLength: 64 }), fc.array(hash32, { maxLength: 30 }), (one, branch, chains) => {
        const segwit = one.witness !== null;
        const more = Array.from({ length: one.nullPrevouts }, () => [
          Buffer.alloc(32),
          u32(0xffffffff),
          varBytes(one.script),
          u32(0),
        ]);
        const inputs = [[one.prevout[0], u32(one.prevout[1]), varBytes(one.script), u32(0)], ...more];
        const body = Buffer.concat([
          ...[compactSize(inputs.length), ...inputs.flat()],
          compactSize(one.outputs.length),
          ...one.outputs.map(({ minor, script }) => Buffer.concat([i64(minor), varBytes(script)])),
        ]);
        const witness = segwit
          ? Buffer.concat(inputs.flatMap(() => [compactSize(one.witness?.length ?? 0), ...(one.witness ?? []).map(varBytes)]))
          : Buffer.alloc(0);
        const proof = Buffer.concat([
          ...[i32(one.version), segwit ? Buffer.of(0, 1) : Buffer.alloc(0), body, witness, u32(0)],
          ...[randomBytes(32), compactSize(branch.length), ...branch, u32(0), compactSize(chains.length), ...chains, u32(1)],
          randomBytes(80),
        ]);
        const block = rawBlock([coinbase(), rawPayment(false, ours)], { version: 0x00620104, auxpow: () => proof });
        expect(read('DOGE', block)).toMatchObject({ transactionCount: 2, touched: paidOnce });
      }),
      { numRuns: RUNS },
    );
  });
});

describe('the extension block (LTC)', () => {
  test('whatever stands in it: what leaves it is an output of the HogEx', () => {
    const input = Buffer.concat([Buffer.of(1), randomBytes(32), u32(0), Buffer.of(0), u32(0xffffffff)]);
    const outputs = Buffer.concat([Buffer.of(1), i64(38_462n), varBytes(ours)]);
    const hogEx: Sealed = {
      bytes: Buffer.concat([i32(2), Buffer.of(0, 8), input, outputs, Buffer.of(0), u32(0)]),
      txid: hash256(Buffer.concat([i32(2), input, outputs, u32(0)]))
        .reverse()
        .toString('hex'),
    };
    fc.assert(
      fc.property(bytesOf(2_000), (extension) => {
        const block = rawBlock([coinbase(), hogEx]);
        const { touched } = read('LTC', { ...block, bytes: Buffer.concat([block.bytes, extension]) });
        expect(touched).toMatchObject([
          { txid: hogEx.txid, inputs: [], outputs: [{ vout: 0, amountMinor: 38_462n, pegOut: true }] },
        ]);
      }),
      { numRuns: RUNS },
    );
  });

  test('a peg-out of the mempool is found behind kernels with feature bits of later versions', () => {
    fc.assert(
      fc.property(fc.constantFrom(0x00, 0x40, 0x80, 0xc0), fc.bigInt({ min: 1n, max: 100n }), (later, minor) => {
        const script = Buffer.concat([Buffer.of(Number(minor)), varBytes(ours)]);
        const kernel = Buffer.concat([Buffer.of(later | 0x05), Buffer.of(3), Buffer.of(1), script, Buffer.alloc(97)]);
        const extension = Buffer.concat([Buffer.of(1), Buffer.alloc(64), Buffer.of(0, 0, 1), kernel]);
        const body = Buffer.concat([Buffer.of(1), randomBytes(32), u32(0), Buffer.of(0), u32(0), Buffer.of(0)]);
        const bytes = Buffer.concat([i32(2), Buffer.of(0, 8), body, extension, u32(0)]);
        expect(readTransactionBytes(bytes, null, features('LTC'), watch)?.outputs).toMatchObject([
          { amountMinor: minor, pegOut: true },
        ]);
      }),
    );
  });
});

describe('special transactions (DASH)', () => {
  test('of any type and payload, with no input, no output or both', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 0xffff }),
        fc.integer({ min: 3, max: 0x7fff }),
        fc.record({ ins: fc.nat(2), outs: fc.nat(2), payload: bytesOf(2_000) }),
        (type, version, { ins, outs, payload }) => {
          const special = rawTransaction({
            version: (type << 16) | version,
            inputs: Array.from({ length: ins }, () => ({ txid: randomBytes(32).toString('hex'), vout: 0 })),
            outputs: Array.from({ length: outs }, () => ({ minor: 1n, script: p2pkh(randomBytes(20)) })),
            payload,
          });
          const paying = rawPayment(false, ours, { version: (type << 16) | version, payload });
          const block = rawBlock([coinbase(), special, paying], { headerHash: 'x11' });
          expect(read('DASH', block)).toMatchObject({ transactionCount: 3, touched: paidOnce });
        },
      ),
      { numRuns: 60 },
    );
  });
});

test.each(CODES)('%s: what others pay each other is not judged, whatever it is', (code) => {
  const other = fc.record({
    version: fc.constantFrom(1, 2, -1, 0x7fffffff & ~0xffff0000, 0),
    script: bytesOf(400),
    outputs: fc.array(fc.record({ minor: amount, script: bytesOf(100) }), { minLength: 1, maxLength: 5 }),
  });
  fc.assert(
    fc.property(fc.array(other, { maxLength: 6 }), (others) => {
      const made = others.map(({ version, script, outputs }) =>
        rawTransaction({
          version: code === 'DASH' ? Math.max(1, version & 2) : version,
          inputs: [{ txid: randomBytes(32).toString('hex'), vout: 0, script }],
          outputs,
        }),
      );
      const block = rawBlock([coinbase(), ...made, rawPayment(features(code).segwit, ours)], {
        headerHash: features(code).headerHash,
      });
      expect(read(code, block)).toMatchObject({ transactionCount: made.length + 2, touched: paidOnce });
    }),
    { numRuns: code === 'DASH' ? 60 : RUNS },
  );
});
