// What checkout links name transactions by.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortableId } from '../../src/core/ids.ts';
import { createCheckoutTokens } from '../../src/outside/checkout-tokens.ts';
import { createRowSeals } from '../../src/outside/row-seals.ts';

const tokensOf = (key: Uint8Array) =>
  createCheckoutTokens(
    createRowSeals(
      () => key,
      () => undefined,
    ),
  );
const tokens = tokensOf(Buffer.alloc(32, 1));

test('a token names its transaction, always by the same 22 characters, and shows nothing of the id', () => {
  const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), random, (atMs, bytes) => {
      const id = sortableId('txn_', atMs, bytes);
      const token = tokens.tokenOf(id);
      expect(token).toMatch(/^[0-9A-Za-z]{22}$/);
      expect(tokens.tokenOf(id)).toBe(token);
      expect(tokens.transactionIdOf(token)).toBe(id);
      expect(`txn_${token}`).not.toBe(id);
    }),
  );
});

test('ids that follow one another have tokens that share no beginning', () => {
  const made = Array.from({ length: 500 }, (_, n) => tokens.tokenOf(sortableId('txn_', 1_700_000_000_000 + n, Buffer.alloc(10))));
  expect(new Set(made.map((token) => token.slice(0, 4))).size).toBeGreaterThan(490);
});

test('another key makes other tokens, and opens none of these as what they are', () => {
  const id = sortableId('txn_', Date.now(), randomBytes(10));
  const others = tokensOf(Buffer.alloc(32, 2));
  expect(others.tokenOf(id)).not.toBe(tokens.tokenOf(id));
  expect(others.transactionIdOf(tokens.tokenOf(id))).not.toBe(id);
});

test.each(['', 'x', '0'.repeat(21), '0'.repeat(23), '!'.repeat(22), `${'0'.repeat(21)}é`, 'z'.repeat(22)])(
  '%j is no token',
  (text) => {
    expect(tokens.transactionIdOf(text)).toBeNull();
  },
);

test('what is no id of a transaction gets no token', () => {
  expect(() => tokens.tokenOf('payout_0351dYxk0d1Jt8vTgkN1AM')).toThrow('no id of a transaction');
  expect(() => tokens.tokenOf('txn_short')).toThrow('no id of a transaction');
});
