// What a payout over Lightning may cost, what a balance or a payment that goes back leaves for it, and how much of our channels one merchant may have on its
// way: compared with what the words say, for every amount up to some thousands.
import { expect, test } from 'vitest';
import {
  chargedFee,
  feeLimit,
  isWhatWasAsked,
  LEAST_REFUND,
  mostPayable,
  refundRange,
} from '../../src/core/lightning/payout-fees.ts';
import { MOST_UNDER_WAY, takesTooManySlots, takesTooMuch } from '../../src/core/lightning/under-way.ts';

const AMOUNTS = Array.from({ length: 4_000 }, (_, n) => BigInt(n));
/** Ten satoshis, or a hundredth where that is more. */
const limit = (amount: bigint): bigint => (amount / 100n > 10n ? amount / 100n : 10n);

test('the limit of a fee is ten satoshis or one percent', () => {
  for (const amount of AMOUNTS) expect(feeLimit(amount)).toBe(limit(amount));
  expect([1n, 1_099n, 1_100n, 10_000n, 99_999n].map(feeLimit)).toEqual([10n, 10n, 11n, 100n, 999n]);
});

test('the most that a balance pays is the largest amount that leaves its fee', () => {
  let most = 0n;
  for (const available of [...AMOUNTS, 1_000_000n, 1_000_001n, 1_010_000n, 123_456_789n]) {
    while (most + 1n + limit(most + 1n) <= available) most += 1n + (available - most > 100_000n ? 10_000n : 0n);
    while (most > 0n && most + limit(most) > available) most -= 1n;
    expect(mostPayable(available), `of ${available}`).toBe(most);
  }
});

test('an invoice may take of a payment that goes back what leaves the highest fee, or as little as leaves that again', () => {
  expect(LEAST_REFUND).toBe(11n);
  for (const total of AMOUNTS) {
    const { least, most } = refundRange(total);
    expect(most).toBe(mostPayable(total));
    const lowest = most - limit(total);
    expect(least).toBe(lowest > 1n ? lowest : 1n);
  }
  expect(refundRange(LEAST_REFUND)).toEqual({ least: 1n, most: 1n });
  expect(refundRange(LEAST_REFUND - 1n).most).toBe(0n);
});

test('a fee is charged in whole satoshis, rounded up, and never above what was held', () => {
  const cases = [
    [0n, 10n, 0n],
    [1n, 10n, 1n],
    [1_000n, 10n, 1n],
    [1_001n, 10n, 2n],
    [10_000n, 10n, 10n],
    [10_001n, 10n, 10n],
    [5_000n, 0n, 0n],
  ] as const;
  for (const [msat, held, charged] of cases) expect(chargedFee(msat, held)).toBe(charged);
});

test('one payment alone may take all of our channels, a further one must leave as much as its merchant has on its way', () => {
  expect(MOST_UNDER_WAY).toBe(10);
  expect(takesTooMuch(1_000n, { underWay: 0n, spendable: 1_000n })).toBe(false);
  expect(takesTooMuch(100n, { underWay: 200n, spendable: 400n })).toBe(false);
  expect(takesTooMuch(100n, { underWay: 200n, spendable: 399n })).toBe(true);
  expect(takesTooMuch(101n, { underWay: 200n, spendable: 400n })).toBe(true);
  expect(takesTooMuch(100n, { underWay: 201n, spendable: 400n })).toBe(true);
});

test('a further payment leaves at least as many slots as its merchant takes with it', () => {
  expect(takesTooManySlots(0, 0)).toBe(false);
  expect(takesTooManySlots(1, 3)).toBe(false);
  expect(takesTooManySlots(1, 2)).toBe(true);
  expect(takesTooManySlots(5, 7)).toBe(false);
  expect(takesTooManySlots(5, 6)).toBe(true);
});

test('what was asked for is paid with its amount to the thousandth of a satoshi, for no more than its highest fee', () => {
  const payout = { amount: 1_000n, feeMax: 10n };
  const cases = [
    ['1000000', '0', true],
    ['1000000', '10000', true],
    ['1000000', '10001', false],
    ['999999', '0', false],
    ['1000001', '0', false],
  ] as const;
  for (const [amountMsat, feeMsat, isAsked] of cases) expect(isWhatWasAsked({ amountMsat, feeMsat }, payout)).toBe(isAsked);
});
