// By which rate the depth of a payment is chosen, where that of its arrival and the one it was valued at differ: the clock was set, or a price came
// in the second of its arrival.
import { expect, test } from 'vitest';
import type { Payment } from '../../../src/core/judge/case.ts';
import { depthForAmount } from '../../../src/core/judge/required-depth.ts';
import { newCase, newPayment, PRICE } from '../../support/one-case.ts';

/** 50 USD by the quote (R = 1), 5,000 by a hundred times as much (R = 3). */
const AMOUNT = 50_000n;
const HIGH = 100n * PRICE;
const depthOf = (known: Partial<Payment>): number => {
  const payment = newPayment(1, { amount: AMOUNT, ...known });
  return depthForAmount(newCase([payment]), payment, AMOUNT).depth;
};

test.each([
  ['of its arrival, where it was valued lower', { arrivalRate: HIGH, valueRate: PRICE }, 3],
  ['it was valued at, where that of its arrival is lower', { arrivalRate: PRICE, valueRate: HIGH }, 3],
  ['of its arrival, before it is valued', { arrivalRate: HIGH, valueRate: null }, 3],
  ['it was valued at, where that of its arrival is gone', { arrivalRate: null, valueRate: HIGH }, 3],
  ['of the quote, where both are lower', { arrivalRate: PRICE / 2n, valueRate: PRICE / 2n }, 1],
  ['nobody knows: as deep as any amount needs', { arrivalRate: null, valueRate: null }, 6],
])('of a late payment it is the one %s', (_, rates, depth) => {
  expect(depthOf({ onTimeMinor: 0n, ...rates })).toBe(depth);
  expect(depthOf({ onTimeMinor: AMOUNT - 1n, ...rates })).toBe(depth);
});

test('of a payment on time it is the quote, of one in another currency that of its arrival', () => {
  expect(depthOf({ onTimeMinor: AMOUNT, arrivalRate: HIGH, valueRate: HIGH })).toBe(1);
  const other = { currency: 'LTC', onTimeMinor: 0n, valueRate: null } as const;
  expect([HIGH, PRICE].map((arrivalRate) => depthOf({ ...other, arrivalRate }))).toEqual([6, 2]);
});
