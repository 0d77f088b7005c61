// What the reference nodes accept although nobody makes it: each must be read, because an unread block stops its currency. Variations of
// each chain's own forms by their rules, then unknown forms, which are read from the node's decoded answer. A failing seed is printed.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { readBlockBytes } from '../../src/outside/utxo/block.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node.ts';
import { readTransactionBytes } from '../../src/outside/utxo/transaction.ts';
import { p2pkh, rawBlock, rawCoinbase, rawPayment, rawTransaction, type Sealed, someScript } from '../support/raw-blocks.ts';
import { compactSize, hash256, i32, reversed, u32, varBytes } from '../support/raw-bytes.ts';

vi.setConfig({ testTimeout: 60_000 });
const RUNS = 200;
const CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];
const ours = someScript('ours');
const watch = {
  hasScript: (bytes: Uint8Array, start: number, end: number) => ours.equals(bytes.subarray(start, end)),
  hasOutpoint: () => false,
  fresh: async () => undefined,
};
const features = (code: UtxoCode) => utxoRow(code).utxo.blockFeatures;
const coinbase = () => rawCoinbase([{ minor: 50_0000_0000n, script: someScript('miner') }]);
const read = (code: UtxoCode, block: { bytes: Buffer; hash: string }) =>
  readBlockBytes(block.bytes, block.hash, features(code), watch);
const paidOnce = [{ outputs: [{ vout: 0, script: ours.toString('hex'), amountMinor: 38_462n }] }];
const bytesOf = (maxLength: number) => fc.uint8Array({ maxLength }).map((one) => Buffer.from(one));
const hash32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((one) => Buffer.from(one));
const amount = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

function i64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}

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

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
async function nodeOf(currency: UtxoCode, result: (call: Call) => unknown): Promise<UtxoNode> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const calls = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
      const one = (call: Call) => {
        const said = result(call);
        const refusal = { result: null, error: { code: -5, message: 'none' }, id: call.id };
        return said === undefined ? refusal : { result: said, error: null, id: call.id };
      };
      response.end(JSON.stringify(Array.isArray(calls) ? calls.map(one) : one(calls)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency, url, network: 'regtest', clock: { now: () => Date.now() } });
  open.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return node;
}

/** A payment in a future form: marked by unknown flags, with more after its outputs. Its txid leaves both out, as BIP141's does. */
function unknownForm(script: Buffer): Sealed & { readonly words: Record<string, unknown> } {
  const [txid, unlock] = [randomBytes(32).toString('hex'), randomBytes(30)];
  const plain = Buffer.concat([
    Buffer.of(1),
    reversed(txid),
    u32(3),
    varBytes(unlock),
    u32(5),
    Buffer.of(1),
    i64(38_462n),
    varBytes(script),
  ]);
  const name = hash256(Buffer.concat([i32(2), plain, u32(9)]))
    .reverse()
    .toString('hex');
  return {
    bytes: Buffer.concat([i32(2), Buffer.of(0, 0x42), plain, randomBytes(50), u32(9)]),
    txid: name,
    words: {
      txid: name,
      version: 2,
      locktime: 9,
      vin: [{ txid, vout: 3, scriptSig: { hex: unlock.toString('hex') }, sequence: 5 }],
      vout: [{ n: 0, value: 0.00038462, scriptPubKey: { hex: script.toString('hex') } }],
    },
  };
}

describe.each(CODES)('a form that nobody knows yet (%s)', (code) => {
  const block = (transactions: readonly Sealed[]) =>
    rawBlock([coinbase(), ...transactions], { headerHash: features(code).headerHash });
  const telling = (made: { bytes: Buffer }, all: readonly (Sealed & { words?: object })[], first: Sealed) => (call: Call) => {
    if (call.method === 'getblock') {
      if (call.params[1] === 0 || call.params[1] === false) return made.bytes.toString('hex');
      return { tx: [first, ...all].map(({ txid }) => txid) };
    }
    const one = [first, ...all].find(({ txid }) => txid === call.params[0]) as (Sealed & { words?: object }) | undefined;
    return call.params[1] === undefined || call.params[1] === false || call.params[1] === 0
      ? one?.bytes.toString('hex')
      : one?.words;
  };

  test('is read from the node’s decoded answer in a block, beside what is read from its bytes', async () => {
    const [strange, stranger, plain, first] = [
      unknownForm(ours),
      unknownForm(p2pkh(randomBytes(20))),
      rawPayment(false, ours),
      coinbase(),
    ];
    const all = [stranger, plain, strange];
    const made = rawBlock([first, ...all], { headerHash: features(code).headerHash });
    const node = await nodeOf(code, telling(made, all, first));
    const { touched, transactionCount } = await node.readBlock(made.hash, watch);
    expect(transactionCount).toBe(4);
    expect(touched.map((one) => one.txid)).toEqual([plain.txid, strange.txid]);
    expect(touched[1]?.outputs).toEqual([{ vout: 0, script: ours.toString('hex'), amountMinor: 38_462n }]);
  });

  test.each([
    ['the amount', { vout: [{ n: 0, value: 9, scriptPubKey: { hex: ours.toString('hex') } }] }],
    ['the lock time', { locktime: 10 }],
  ])('lets the chain wait when the txid does not prove %s that is told', async (_, lie) => {
    const [strange, first] = [unknownForm(ours), coinbase()];
    const lying = { ...strange, words: { ...strange.words, ...lie } };
    const made = rawBlock([first, lying], { headerHash: features(code).headerHash });
    const node = await nodeOf(code, telling(made, [lying], first));
    await expect(node.readBlock(made.hash, watch)).rejects.toMatchObject({
      state: 'bad_answer',
      message: expect.stringMatching(/block [0-9a-f]{64} cannot be read: .*from its decoded answer: the transaction hashes to/),
    });
  });

  test('lets the chain wait when the node lists other transactions', async () => {
    const [strange, first] = [unknownForm(ours), coinbase()];
    const made = block([strange]);
    const node = await nodeOf(code, telling(made, [strange], first));
    await expect(node.readBlock(made.hash, watch)).rejects.toThrow(/do not fit the Merkle root/);
  });

  test('is read in the mempool, and stops nothing where it cannot be', async () => {
    const [strange, hidden, plain] = [unknownForm(ours), unknownForm(ours), rawPayment(false, ours)];
    const all: (Sealed & { words?: object })[] = [strange, { bytes: hidden.bytes, txid: hidden.txid }, plain];
    const node = await nodeOf(code, telling({ bytes: Buffer.alloc(0) }, all, coinbase()));
    const { touched, missing, unread } = await node.readMempoolTransactions(
      all.map((one) => one.txid),
      watch,
    );
    expect(touched.map((one) => one.txid)).toEqual([strange.txid, plain.txid]);
    expect(missing).toEqual([]);
    expect(unread).toMatchObject([{ txid: hidden.txid, reason: expect.stringContaining('cannot be read') }]);
    expect(node.readRaw(strange.bytes, watch)).toBeNull();
  });
});

test('a proof of merged mining in a form that nobody knows is moved over', async () => {
  const [first, paid] = [coinbase(), rawPayment(false, ours)];
  const made = rawBlock([first, paid], {
    version: 0x00620104,
    auxpow: () => Buffer.concat([Buffer.alloc(4), Buffer.of(0xff), randomBytes(500)]),
  });
  const node = await nodeOf('DOGE', ({ method, params }) => {
    if (method === 'getblock') return params[1] === false ? made.bytes.toString('hex') : { tx: [first.txid, paid.txid] };
    const one = [first, paid].find(({ txid }) => txid === params[0]) as Sealed;
    const words = { txid: one.txid, version: 2, locktime: 0, vin: [{ coinbase: 'aa', sequence: 0 }], vout: [] };
    return params[1] === false || params[1] === 0 ? one.bytes.toString('hex') : words;
  });
  expect(await node.readBlock(made.hash, watch)).toMatchObject({ transactionCount: 2, touched: [{ txid: paid.txid }] });
});
