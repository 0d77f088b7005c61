// The scanner on blocks that a real bitcoind and a real litecoind made (real-blocks.json: bytes, and the daemon's own decoding), and on the
// same bytes damaged in every way: a clear refusal or the same facts, never a crash, never other facts.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { readBlockBytes } from '../../src/outside/utxo/block.ts';
import { displayHash, foldMerkle, Malformed } from '../../src/outside/utxo/bytes.ts';
import { readTransactionBytes } from '../../src/outside/utxo/transaction.ts';

type RealBlock = {
  currency: UtxoCode;
  what: string;
  hash: string;
  previous: string;
  time: number;
  bytes: string;
  txids: string[];
  /** txid:index:script:minor units */
  outputs: string[];
};
type RealTransaction = { currency: UtxoCode; what: string; txid: string; bytes: string };

const real = JSON.parse(readFileSync(new URL('./real-blocks.json', import.meta.url), 'utf8')) as (RealBlock | RealTransaction)[];
const blocks = real.filter((one): one is RealBlock => 'hash' in one);
const transactions = real.filter((one): one is RealTransaction => !('hash' in one));

const everything = { hasScript: () => true, hasOutpoint: () => true };
const nothing = { hasScript: () => false, hasOutpoint: () => false };
const featuresOf = (currency: UtxoCode) => utxoRow(currency).utxo.blockFeatures;
/** Every output, whoever can spend it. */
const outputsOf = ({ outputs, unprotectedOutputs = [] }: TransactionFacts) =>
  [...outputs, ...unprotectedOutputs].sort((a, b) => a.vout - b.vout);
const read = (block: RealBlock, bytes = Buffer.from(block.bytes, 'hex'), hash = block.hash) =>
  readBlockBytes(bytes, hash, featuresOf(block.currency), everything);

describe.each(blocks)('$currency: $what', (block) => {
  test('every transaction and output as the daemon decodes them', () => {
    const facts = read(block);
    expect(facts).toMatchObject({
      hash: block.hash,
      previousHash: block.previous,
      timeMs: block.time * 1000,
      transactionCount: block.txids.length,
    });
    expect(facts.touched.map((one) => one.txid)).toEqual(block.txids);
    expect(facts.touched.map((one) => one.coinbase)).toEqual(block.txids.map((_, i) => i === 0));
    const outputs = facts.touched.flatMap((one) =>
      outputsOf(one).map((o) => `${one.txid}:${o.vout}:${o.script}:${o.amountMinor}`),
    );
    expect(outputs).toEqual(block.outputs);
  });

  test('only what is watched is reported', () => {
    const bytes = Buffer.from(block.bytes, 'hex');
    expect(readBlockBytes(bytes, block.hash, featuresOf(block.currency), nothing).touched).toEqual([]);
    const [txid, vout, script] = (block.outputs.at(-1) as string).split(':') as [string, string, string];
    const only = {
      hasScript: (b: Uint8Array, from: number, to: number) => Buffer.from(b.subarray(from, to)).toString('hex') === script,
      hasOutpoint: () => false,
    };
    const { touched } = readBlockBytes(bytes, block.hash, featuresOf(block.currency), only);
    expect(touched).toMatchObject([{ txid, spends: [] }]);
    expect(outputsOf(touched[0] as TransactionFacts)).toMatchObject([{ vout: Number(vout), script }]);
  });

  test('cut off anywhere, or with something left over: refused, unless the Merkle root proves all that counts', () => {
    const bytes = Buffer.from(block.bytes, 'hex');
    const whole = read(block);
    const lengths = Array.from({ length: bytes.length }, (_, length) => length);
    const readable = lengths.filter((length) => {
      try {
        expect(read(block, bytes.subarray(0, length))).toEqual(whole);
        return true;
      } catch (error) {
        if (!(error instanceof Malformed)) throw error;
        return false;
      }
    });
    const extension = block.what.includes('HogEx') || readable.length > 0;
    if (!extension) expect(() => read(block, Buffer.concat([bytes, Buffer.from([0])]))).toThrow(/left over/);
    // nothing but an extension block, at the very end, may be missing
    expect(readable).toEqual(lengths.slice(lengths.length - readable.length));
    if (block.currency !== 'LTC') expect(readable).toEqual([]);
  });

  test('damaged anywhere: refused, or nothing that counts was touched', () => {
    const bytes = Buffer.from(block.bytes, 'hex');
    const right = read(block);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] as number) ^ mask;
        try {
          expect(read(block, damaged)).toEqual(right);
        } catch (error) {
          if (!(error instanceof Malformed)) throw error;
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('another hash than the one asked for: refused', () => {
    expect(() => read(block, undefined, '00'.repeat(32))).toThrow(/the header hashes to/);
  });
});

describe.each(transactions)('$currency: $what', (transaction) => {
  const bytes = Buffer.from(transaction.bytes, 'hex');
  const features = featuresOf(transaction.currency);

  test('is read, and is what it is called', () => {
    const facts = readTransactionBytes(bytes, transaction.txid, features, everything);
    if (transaction.what.includes('only')) expect(facts).toBeNull();
    else expect(facts?.txid).toBe(transaction.txid);
  });

  test('under another name or cut off: refused', () => {
    if (!transaction.what.includes('only')) {
      expect(() => readTransactionBytes(bytes, '00'.repeat(32), features, everything)).toThrow(Malformed);
      for (let length = 0; length < bytes.length; length++) {
        expect(() => readTransactionBytes(bytes.subarray(0, length), transaction.txid, features, everything)).toThrow(Malformed);
      }
    }
  });
});

describe('what a lying node could try', () => {
  test('a HogEx as a transaction of the mempool, whose extension would end where the block does: refused', () => {
    const block = blocks.find(({ what }) => what.includes('an empty MWEB')) as RealBlock;
    const hogEx = read(block).touched.at(-1) as TransactionFacts;
    const bytes = Buffer.from(block.bytes, 'hex');
    const script = Buffer.from(outputsOf(hogEx)[0]?.script ?? '', 'hex');
    const marker = bytes.lastIndexOf(script) + script.length;
    expect(bytes[marker]).toBe(0);
    bytes[marker] = 1;
    expect(() => read(block, bytes)).toThrow(/MWEB marker 1 in a transaction/);
  });

  const block = blocks[0] as RealBlock;
  const bytes = Buffer.from(block.bytes, 'hex');

  test('transactions repeated so that the Merkle root stays (CVE-2012-2459): refused', () => {
    const leaves = Buffer.alloc(6 * 32);
    for (let i = 0; i < 6; i++) leaves.writeUInt8(i + 1, i * 32);
    const six = Buffer.from(leaves);
    foldMerkle(six, 6);
    const eight = Buffer.concat([leaves, leaves.subarray(4 * 32)]);
    expect(() => foldMerkle(eight, 8)).toThrow(/repeated/);
    expect(displayHash(six, 0)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('an MWEB block where the chain has none: refused', () => {
    const litecoin = blocks.find((one) => one.what.includes('first HogEx')) as RealBlock;
    expect(() => readBlockBytes(Buffer.from(litecoin.bytes, 'hex'), litecoin.hash, featuresOf('BTC'), everything)).toThrow(
      /flags 8/,
    );
  });

  test('a segwit block where the chain has no segwit: refused', () => {
    expect(() => readBlockBytes(bytes, block.hash, featuresOf('BCH'), everything)).toThrow(Malformed);
  });

  test('a negative amount, a count that promises more than there is: refused', () => {
    const raw = Buffer.concat([
      Buffer.from('01000000', 'hex'),
      Buffer.from([1]),
      Buffer.alloc(36, 7),
      Buffer.from('00ffffffff', 'hex'),
      Buffer.from([1]),
      Buffer.from('00000000000000800151', 'hex'),
      Buffer.alloc(4),
    ]);
    expect(() => readTransactionBytes(raw, null, featuresOf('BTC'), everything)).toThrow(/negative amount/);
    const right = Buffer.from(raw);
    right[raw.indexOf('00000000000000800151', 0, 'hex') + 7] = 0;
    expect(readTransactionBytes(right, null, featuresOf('BTC'), everything)?.unprotectedOutputs).toEqual([
      { vout: 0, script: '51', amountMinor: 0n },
    ]);
    const many = Buffer.from(right);
    many[4] = 0xfc;
    expect(() => readTransactionBytes(many, null, featuresOf('BTC'), everything)).toThrow(Malformed);
  });

  test.each<[UtxoCode, bigint]>([
    ['BTC', 21_000_000n],
    ['LTC', 84_000_000n],
    ['BCH', 21_000_000n],
    ['DASH', 21_000_000n],
    ['DOGE', 10_000_000_000n],
  ])('%s: more than all money in one output: refused', (currency, whole) => {
    const paying = (minor: bigint): Buffer => {
      const amount = Buffer.alloc(8);
      amount.writeBigUInt64LE(BigInt.asUintN(64, minor));
      const input = Buffer.concat([Buffer.from([1]), Buffer.alloc(36, 7), Buffer.from('00ffffffff', 'hex')]);
      const output = Buffer.concat([Buffer.from([1]), amount, Buffer.from('0151', 'hex')]);
      return Buffer.concat([Buffer.from('01000000', 'hex'), input, output, Buffer.alloc(4)]);
    };
    const most = whole * 100_000_000n;
    const read = (minor: bigint) => readTransactionBytes(paying(minor), null, featuresOf(currency), everything);
    expect(read(most)?.unprotectedOutputs).toEqual([{ vout: 0, script: '51', amountMinor: most }]);
    for (const minor of [most + 1n, most * 2n, 9_000_000_000_000_000_000n])
      expect(() => read(minor)).toThrow(/an amount above MAX_MONEY/);
    expect(() => read(-5n)).toThrow(/a negative amount/);
  });

  test('random bytes: refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (random) => {
        expect(() => readTransactionBytes(Buffer.from(random), '00'.repeat(32), featuresOf('LTC'), everything)).toThrow(
          Malformed,
        );
      }),
    );
  });
});
