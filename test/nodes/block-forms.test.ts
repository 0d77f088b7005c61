// What blocks of the five chains contain besides plain transactions, and how our scanner reads it: merged mining (DOGE), special
// transactions and X11 (DASH). Bytes come from test/support/raw-blocks.ts; tokens (BCH) are in tokens.test.ts.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { readBlockBytes } from '../../src/outside/utxo/block.ts';
import { Malformed } from '../../src/outside/utxo/bytes.ts';
import { readTransactionBytes } from '../../src/outside/utxo/transaction.ts';
import {
  p2wpkh,
  type RawBlockOptions,
  rawAuxPow,
  rawBlock,
  rawCoinbase,
  rawPayment,
  rawTransaction,
  type Sealed,
  someScript,
} from '../support/raw-blocks.ts';

const CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];
const ours = someScript('ours');
const watch = {
  hasScript: (bytes: Uint8Array, start: number, end: number) => ours.equals(bytes.subarray(start, end)),
  hasOutpoint: () => false,
};
const features = (code: UtxoCode) => utxoRow(code).utxo.blockFeatures;
const read = (code: UtxoCode, block: { bytes: Buffer; hash: string }) =>
  readBlockBytes(block.bytes, block.hash, features(code), watch);
const coinbase = () => rawCoinbase([{ minor: 50_0000_0000n, script: someScript('miner') }]);
const payment = (code: UtxoCode): Sealed => rawPayment(features(code).segwit, ours);
const blockOf = (code: UtxoCode, transactions: readonly Sealed[], options: RawBlockOptions = {}) =>
  rawBlock([coinbase(), ...transactions], { headerHash: features(code).headerHash, ...options });

describe.each(CODES)('a block of %s', (code) => {
  test('is read: payments by txid, its parent, its time', () => {
    const paid = payment(code);
    const facts = read(code, blockOf(code, [rawPayment(false, someScript('other')), paid]));
    expect(facts).toMatchObject({ previousHash: '11'.repeat(32), timeMs: 1_800_000_000_000, transactionCount: 3 });
    expect(facts.touched.map((one) => one.txid)).toEqual([paid.txid]);
    expect(facts.touched[0]?.outputs).toEqual([{ vout: 0, script: ours.toString('hex'), amountMinor: 38_462n }]);
  });

  test('under another hash, with another byte anywhere, cut or lengthened is refused and never read past its end', () => {
    const block = blockOf(code, [payment(code), payment(code)]);
    expect(() => read(code, { ...block, hash: 'ab'.repeat(32) })).toThrow(Malformed);
    fc.assert(
      fc.property(fc.nat(block.bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const bytes = Buffer.from(block.bytes);
        bytes[at] = (bytes[at] as number) ^ flip;
        // a witness is in no txid: what is behind it still decides nothing
        try {
          expect(read(code, { ...block, bytes }).touched).toHaveLength(2);
          expect(features(code).segwit).toBe(true);
        } catch (error) {
          if (!(error instanceof Malformed)) throw error;
        }
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(fc.nat(block.bytes.length - 1), (length) => {
        expect(() => read(code, { ...block, bytes: block.bytes.subarray(0, length) })).toThrow(Malformed);
      }),
      { numRuns: 100 },
    );
    expect(() => read(code, { ...block, bytes: Buffer.concat([block.bytes, Buffer.from([0])]) })).toThrow(Malformed);
  });

  test('of random bytes behind its header throws Malformed and nothing else', () => {
    const header = blockOf(code, []);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (garbage) => {
        const bytes = Buffer.concat([header.bytes.subarray(0, 80), garbage]);
        expect(() => read(code, { ...header, bytes })).toThrow(Malformed);
      }),
      { numRuns: 300 },
    );
  });
});

describe('witnesses', () => {
  test.each(['BCH', 'DASH', 'DOGE'] as const)('%s knows none: a transaction with one is refused', (code) => {
    const segwit = rawPayment(true, p2wpkh(randomBytes(20)));
    expect(() => read(code, blockOf(code, [segwit]))).toThrow(Malformed);
    expect(() => readTransactionBytes(segwit.bytes, segwit.txid, features(code), watch)).toThrow(Malformed);
  });
});

describe('merged mining (DOGE)', () => {
  const merged = (auxpow: (hash: Buffer) => Buffer, code: UtxoCode = 'DOGE') =>
    blockOf(code, [payment(code)], { version: 0x00620104, auxpow });

  test('a block with a proof of the parent chain is named by its own header and read to its end', () => {
    for (const options of [
      {},
      { witness: true },
      { coinbaseBranch: [] },
      { chainBranch: [randomBytes(32), randomBytes(32), randomBytes(32)], chainIndex: 5 },
      { coinbaseBranch: Array.from({ length: 12 }, () => randomBytes(32)) },
    ])
      expect(
        read(
          'DOGE',
          merged((hash) => rawAuxPow(hash, options)),
        ).touched,
      ).toHaveLength(1);
  });

  test('a block without the version bit has no proof', () => {
    expect(read('DOGE', blockOf('DOGE', [payment('DOGE')], { version: 0x00620004 })).touched).toHaveLength(1);
    expect(() => read('DOGE', blockOf('DOGE', [payment('DOGE')], { version: 0x00620104 }))).toThrow(Malformed);
  });

  test('a proof cut off anywhere is refused', () => {
    const block = merged((hash) => rawAuxPow(hash));
    for (let length = 80; length < block.bytes.length; length += 3)
      expect(() => read('DOGE', { ...block, bytes: block.bytes.subarray(0, length) })).toThrow(Malformed);
  });

  test('the same version bit means nothing on a chain without merged mining', () => {
    expect(read('BCH', blockOf('BCH', [payment('BCH')], { version: 0x00620104 })).touched).toHaveLength(1);
  });
});

describe('special transactions (DASH)', () => {
  const special = (type: number, how: { payload?: Buffer; outputs?: number } = {}) =>
    rawPayment(false, ours, { version: (type << 16) | 3, payload: how.payload ?? randomBytes(270) });

  test.each([
    ['provider registration', 1],
    ['provider service update', 2],
    ['asset lock', 8],
    ['a type that nobody knows yet', 0x7abc],
  ])('%s (type %i): the payload is in the txid and its payment is ours', (_, type) => {
    const one = special(type);
    const facts = read('DASH', blockOf('DASH', [one, payment('DASH')]));
    expect(facts.touched[0]).toMatchObject({ txid: one.txid, outputs: [{ amountMinor: 38_462n }] });
    expect(readTransactionBytes(one.bytes, one.txid, features('DASH'), watch)?.txid).toBe(one.txid);
  });

  test('the coinbase carries the masternode list (type 5)', () => {
    const first = rawCoinbase([{ minor: 1n, script: ours }], { version: 0x00050003, payload: randomBytes(38) });
    const facts = read('DASH', rawBlock([first, payment('DASH')], { headerHash: 'x11' }));
    expect(facts.touched[0]).toMatchObject({ txid: first.txid, coinbase: true });
  });

  test('a quorum commitment has neither inputs nor outputs; a payout of the credit pool has no inputs and is a payment', () => {
    const commitment = rawTransaction({ version: 0x00060003, inputs: [], outputs: [], payload: randomBytes(330) });
    const unlock = rawTransaction({
      version: 0x00090003,
      inputs: [],
      outputs: [{ minor: 777n, script: ours }],
      payload: randomBytes(190),
    });
    const facts = read('DASH', blockOf('DASH', [commitment, unlock]));
    expect(facts.touched).toEqual([
      {
        txid: unlock.txid,
        coinbase: false,
        inputs: [],
        outputs: [{ vout: 0, script: ours.toString('hex'), amountMinor: 777n }],
        spends: [],
      },
    ]);
  });

  test('below version 3 there is no type: the upper half is only an odd version', () => {
    const odd = rawPayment(false, ours, { version: (0xbb << 16) | 2 });
    expect(read('DASH', blockOf('DASH', [odd])).touched[0]?.txid).toBe(odd.txid);
  });

  test('a payload that is cut off, too long or missing is refused', () => {
    const one = special(1);
    expect(() => readTransactionBytes(one.bytes.subarray(0, -1), null, features('DASH'), watch)).toThrow(Malformed);
    expect(() => readTransactionBytes(Buffer.concat([one.bytes, Buffer.from([0])]), null, features('DASH'), watch)).toThrow(
      /left over/,
    );
    const missing = rawPayment(false, ours, { version: 0x00010003 });
    expect(() => readTransactionBytes(missing.bytes, null, features('DASH'), watch)).toThrow(Malformed);
  });

  test('other chains have no such thing: the payload is left over', () => {
    expect(() => readTransactionBytes(special(1).bytes, null, features('DOGE'), watch)).toThrow(Malformed);
  });

  test('a block is named by the X11 of its header (Dash, block 0 of mainnet and regtest)', () => {
    const { genesis } = utxoRow('DASH').utxo;
    const root = 'e0028eb9648db56b1ac77cf090b99048a8007e2bb64b68f092c03c7f56a662c7';
    for (const [hash, time, bits, nonce] of [
      [genesis.mainnet, 1390095618, 0x1e0ffff0, 28917698],
      [genesis.regtest, 1417713337, 0x207fffff, 1096447],
    ] as const) {
      const header = Buffer.alloc(80);
      header.writeInt32LE(1, 0);
      Buffer.from(root, 'hex').reverse().copy(header, 36);
      header.writeUInt32LE(time, 68);
      header.writeUInt32LE(bits, 72);
      header.writeUInt32LE(nonce, 76);
      // the hash fits: what is missing is the rest of the block
      expect(() => readBlockBytes(header, hash, features('DASH'), watch)).toThrow(/cut off at byte 80/);
      expect(() => readBlockBytes(header, hash, features('DOGE'), watch)).toThrow(/the header hashes to/);
    }
  });
});
