// What is asked of suspense, and of late payments, before they are booked together: to the last unit, and of nothing else that lies beside
// them.
import { describe, expect, test } from 'vitest';
import type { ChainView, Payment } from '../../../src/core/judge/case.ts';
import { isDisputed, lateReached, suspenseReached } from '../../../src/core/judge/required-depth.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const DEEP = TIP - 9;
/** Above the limit of 1,000 USD. */
const LARGE = 2_000_000n;
const held = (id: number, amount: bigint, known: Partial<Payment> = {}) =>
  newPayment(id, { amount, onTimeMinor: amount, classified: true, present: true, inSuspense: amount, ...known });
const mined = (height: number) => ({ state: 'mined', height, blockHash: `block ${height}` }) as const;

describe('together, before they are booked', () => {
  test('what is in suspense needs its depth to the last unit', () => {
    const reached = (inSuspense: bigint) => suspenseReached(newCase([held(1, 1_000n, { inSuspense }), held(2, 5n, mined(DEEP))]));
    expect([reached(0n), reached(1n)]).toEqual([true, false]);
  });

  test('late payments need theirs to the last unit, and those on time none', () => {
    const deep = held(1, LARGE, { ...mined(DEEP), onTimeMinor: 0n });
    const reached = (lateMinor: bigint) => {
      const other = held(2, 1_000n, { onTimeMinor: 1_000n - lateMinor });
      return lateReached(newCase([deep, other]), [deep, other]);
    };
    expect([reached(0n), reached(1n)]).toEqual([true, false]);
  });
});

describe('suspense is disputed', () => {
  const disputed = (payments: readonly Payment[], agreed?: ChainView['agreed']): boolean => {
    const view: ChainView = { tipHeight: TIP, timeMs: WINDOW_END_MS, ...(agreed === undefined ? {} : { agreed }) };
    return isDisputed(newCase(payments, { chains: new Map([['BTC', view]]) }));
  };
  const upTo = (height: number) => ({ height, limitMinor: 1_000_00n });

  test('where the block of what is worth more than the limit is not agreed, however little of it lies there', () => {
    const large = (inSuspense: bigint) => disputed([held(1, LARGE, { ...mined(DEEP), inSuspense })], upTo(DEEP - 1));
    expect([large(0n), large(1n), large(LARGE)]).toEqual([false, true, true]);
  });

  test('not for what is booked beside it, nor for what is below the limit or not there yet', () => {
    const booked = held(1, LARGE, { ...mined(DEEP), inSuspense: 0n });
    expect(disputed([booked, held(2, 600n, mined(DEEP))], upTo(DEEP - 1))).toBe(false);
    expect(disputed([held(1, 600n)], upTo(TIP))).toBe(false);
  });

  test('where nobody could say what its block pays, and not for another block', () => {
    const payments = [held(1, LARGE, mined(DEEP))];
    const agreed = (unconfirmed: number) => ({ ...upTo(TIP), unconfirmed: new Set([unconfirmed]) });
    expect([disputed(payments, agreed(DEEP)), disputed(payments, agreed(DEEP + 1))]).toEqual([true, false]);
  });

  test('never where one node is configured, whatever it is worth', () => {
    const unknown = held(1, 600n, { onTimeMinor: 0n, arrivalRate: null, valueRate: null });
    expect([disputed([unknown]), disputed([unknown], upTo(TIP))]).toEqual([false, true]);
    expect(disputed([held(1, LARGE, { arrivalRate: PRICE })])).toBe(false);
  });
});
