// Outputs of Bitcoin Cash that carry a CashToken: recognised, and never a payment. The tokens are written by libauth.
import { randomBytes } from 'node:crypto';
import { encodeTransactionOutput } from '@bitauth/libauth';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { readTransactionBytes } from '../../src/outside/utxo/transaction.ts';
import { rawTransaction, someScript } from '../support/raw-blocks.ts';

const ours = someScript('ours');
const watch = {
  hasScript: (bytes: Uint8Array, start: number, end: number) => ours.equals(bytes.subarray(start, end)),
  hasOutpoint: () => false,
};
const features = (code: UtxoCode) => utxoRow(code).utxo.blockFeatures;

describe('tokens (BCH)', () => {
  const category = randomBytes(32);
  type Token = NonNullable<Parameters<typeof encodeTransactionOutput>[0]['token']>;
  /** The token as libauth writes it before a script. */
  function prefix(token: Omit<Token, 'category'>): Buffer {
    const script = Buffer.from([0x51]);
    const bytes = Buffer.from(
      encodeTransactionOutput({
        lockingBytecode: script,
        valueSatoshis: 0n,
        token: { ...token, category: Uint8Array.from(category) },
      }),
    );
    const lengthBytes = (bytes[8] as number) < 0xfd ? 1 : 3;
    return bytes.subarray(8 + lengthBytes, -script.length);
  }
  const withToken = (token: Buffer) =>
    rawTransaction({
      inputs: [{ txid: 'ab'.repeat(32), vout: 3 }],
      outputs: [
        { minor: 1000n, script: ours, token },
        { minor: 2000n, script: ours },
      ],
    });

  test.each([
    ['fungible', { amount: 5n }, { tokens: 5n, nft: false }],
    ['fungible, the largest amount', { amount: 2n ** 63n - 1n }, { tokens: 2n ** 63n - 1n, nft: false }],
    ['fungible, amounts of 3 and 5 bytes', { amount: 70_000n }, { tokens: 70_000n, nft: false }],
    ['an NFT', { amount: 0n, nft: { capability: 'none', commitment: new Uint8Array(0) } }, { tokens: 0n, nft: true }],
    [
      'a minting NFT with a commitment',
      { amount: 0n, nft: { capability: 'minting', commitment: new Uint8Array(40).fill(7) } },
      { tokens: 0n, nft: true },
    ],
    ['both', { amount: 253n, nft: { capability: 'mutable', commitment: Uint8Array.of(1) } }, { tokens: 253n, nft: true }],
  ] as const)('%s: an output with a token is told apart and is no payment, nor is the amount under it', (_, token, expected) => {
    const one = withToken(prefix(token as Omit<Token, 'category'>));
    const facts = readTransactionBytes(one.bytes, one.txid, features('BCH'), watch);
    expect(facts?.outputs).toEqual([{ vout: 1, script: ours.toString('hex'), amountMinor: 2000n }]);
    expect(facts?.tokenOutputs).toEqual([
      {
        vout: 0,
        script: ours.toString('hex'),
        amountMinor: 1000n,
        category: expect.stringMatching(/^[0-9a-f]{64}$/),
        ...expected,
      },
    ]);
  });

  test('the category is given in the order in which it is displayed', () => {
    const one = withToken(Buffer.concat([Buffer.from([0xef]), category, Buffer.from([0x10, 1])]));
    const facts = readTransactionBytes(one.bytes, null, features('BCH'), watch);
    expect(facts?.tokenOutputs?.[0]?.category).toBe(Buffer.from(category).reverse().toString('hex'));
  });

  test.each([
    ['no bits at all', '00'],
    ['the reserved bit', '9001'],
    ['a capability without an NFT', '1101'],
    ['an unknown capability', '23'],
    ['a commitment without an NFT', '4001aa'],
    ['an empty commitment', '6000'],
    ['an amount of zero', '1000'],
    ['an amount above the largest', '10ff0000000000000080'],
    ['an amount that is not in its shortest form', '10fd0100'],
    ['an amount cut off', '10fe01'],
  ])('%s is no token: the output is a script that is not ours', (_, tail) => {
    const one = withToken(Buffer.concat([Buffer.from([0xef]), category, Buffer.from(tail, 'hex')]));
    const facts = readTransactionBytes(one.bytes, null, features('BCH'), watch);
    expect(facts?.outputs.map((output) => output.vout)).toEqual([1]);
    expect(facts?.tokenOutputs).toBeUndefined();
  });

  test('any bytes behind the prefix are read without reading past the script', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), (tail) => {
        const one = withToken(Buffer.concat([Buffer.from([0xef]), Buffer.from(tail)]));
        expect(readTransactionBytes(one.bytes, one.txid, features('BCH'), watch)?.outputs).toHaveLength(1);
      }),
      { numRuns: 500 },
    );
  });

  test('on another chain such an output is only a script that is not ours', () => {
    const one = withToken(Buffer.concat([Buffer.from([0xef]), category, Buffer.from([0x10, 5])]));
    const facts = readTransactionBytes(one.bytes, null, features('BTC'), watch);
    expect(facts?.outputs.map((output) => output.vout)).toEqual([1]);
    expect(facts?.tokenOutputs).toBeUndefined();
  });
});
