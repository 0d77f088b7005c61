// Each question about a payment at its edge: the last unit, the last millisecond, and what must not matter.
import { describe, expect, test } from 'vitest';
import type { Case, Payment, Refund } from '../../../src/core/judge/case.ts';
import {
  chainOf,
  countingPayments,
  isLost,
  isOnTime,
  isUnconfirmed,
  lateCounts,
  nextTime,
  youngestCounting,
} from '../../../src/core/judge/payments.ts';
import { BOOKED_GONE_MS, GRACE_MS, OUTAGE_GRACE_MS, UNBOOKED_GONE_MS } from '../../../src/core/judge/times.ts';
import { newCase, newPayment, newTransaction, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const judged = { classified: true, present: true, valueRate: PRICE } as const;
const onTime = (id: number, amount: bigint, known: Partial<Payment> = {}) =>
  newPayment(id, { ...judged, amount, onTimeMinor: amount, ...known });
const late = (id: number, amount: bigint, known: Partial<Payment> = {}) => newPayment(id, { ...judged, amount, ...known });

describe('unconfirmed', () => {
  test.each([
    ['what was in no block', {}, true],
    ['not what has been in one and waits again', { lastHeight: 5 }, false],
    ['not what is locked', { lock: 'instantsend' }, false],
    ['not what is in a block', { state: 'mined', height: 5 }, false],
  ] as const)('is %s', (_what, known, expected) => {
    expect(isUnconfirmed(newPayment(1, known))).toBe(expected);
  });
});

describe('lost', () => {
  test.each([
    ['what is booked and gone for long', { state: 'gone', goneSinceMs: 0 }, true],
    ['not what is gone nobody knows since when', { state: 'gone' }, false],
    ['not what was gone and is in the mempool again', { state: 'mempool', goneSinceMs: 0 }, false],
  ] as const)('is %s', (_what, known, expected) => {
    const payment = newPayment(1, { ...known, partKey: 'dep:btc:tx1:1' });
    expect(isLost(newCase([payment]), payment)).toBe(expected);
  });
});

test('of a payment on a chain that was not read nothing can be said', () => {
  const payment = newPayment(1, { currency: 'DOGE' });
  expect(() => chainOf(newCase([payment]), payment)).toThrow('no view of the chain of DOGE');
});

describe('on time after an outage', () => {
  const deadline = WINDOW_END_MS + GRACE_MS;
  const latest = WINDOW_END_MS + OUTAGE_GRACE_MS;
  const away = { seenAtMs: latest + 1, caughtUpAtMs: deadline - 1 };
  test.each([
    ['a block dated two hours after the window', { ...away, foundMined: true, blockTimeMs: latest }, true],
    ['not a block dated a millisecond later', { ...away, foundMined: true, blockTimeMs: latest + 1 }, false],
    ['not the block of what was seen in the mempool first, later than that', { ...away, blockTimeMs: latest }, false],
    ['not what is found in a block that has no date', { ...away, foundMined: true }, false],
    ['not where the chain was read up to the end of the grace', { seenAtMs: deadline + 1, caughtUpAtMs: deadline }, false],
    ['where it was read up to a millisecond before', { seenAtMs: deadline + 1, caughtUpAtMs: deadline - 1 }, true],
  ] as const)('%s', (_what, known, expected) => {
    expect(isOnTime(newTransaction(), newPayment(1, known))).toBe(expected);
  });
});

describe('late payments count (rule 23)', () => {
  const counts = (payments: readonly Payment[], toleranceBps = 100): boolean | null =>
    lateCounts(newCase(payments, { transaction: { status: 'pending', toleranceBps } }), payments);

  test('where they complete the price, to the last unit', () => {
    expect(counts([onTime(1, 49_999n), late(2, 1n)], 0)).toBe(true);
    expect(counts([onTime(1, 49_998n), late(2, 1n)], 0)).toBe(false);
  });

  test('not where the price is complete without them, or within its tolerance', () => {
    expect(counts([onTime(1, 50_000n), late(2, 1_000n)])).toBe(false);
    expect(counts([onTime(1, 49_500n), late(2, 1_000n)])).toBe(false);
    expect(counts([onTime(1, 49_499n), late(2, 1_000n)])).toBe(true);
  });

  test('not where a risen rate makes less than the missing amount worth the missing dollars', () => {
    expect(counts([onTime(1, 20_000n), late(2, 15_000n, { valueRate: PRICE * 2n })])).toBe(false);
  });

  test('whether or not the worth of what is on time is known', () => {
    expect(counts([onTime(1, 20_000n, { valueRate: null }), late(2, 30_000n)])).toBe(true);
    expect(counts([onTime(1, 20_000n), late(2, 30_000n, { valueRate: null })])).toBe(null);
  });
});

describe('the next time of a payment', () => {
  const at = (known: Partial<Payment>, refunds: readonly Refund[] = [], nowMs = WINDOW_END_MS): number | null => {
    const chains: Case['chains'] = new Map([['BTC', { tipHeight: TIP, timeMs: nowMs }]]);
    const it = newCase([newPayment(1, known)], { refunds: [...refunds], chains, nowMs });
    return nextTime(it, it.payments[0]!);
  };
  const gone = { state: 'gone', goneSinceMs: 1_000, classified: true } as const;
  const refundOf = (payment: bigint): Refund => ({
    id: 'r',
    currency: 'BTC',
    part: 'whole',
    total: 1_000n,
    state: 'waiting',
    isHeld: false,
    shares: new Map([[payment, { available: 0n, suspense: 1_000n }]]),
  });

  test('is when what is gone is withdrawn or, of what is booked, lost', () => {
    expect(at(gone)).toBe(1_000 + UNBOOKED_GONE_MS);
    expect(at({ ...gone, partKey: 'dep:1' }, [], 1_000)).toBe(1_000 + BOOKED_GONE_MS);
  });

  test('is not now: then it is lost already', () => {
    expect(at({ ...gone, partKey: 'dep:1' }, [], 1_000 + BOOKED_GONE_MS)).toBe(null);
  });

  test('is none for what nobody took note of, and for what is there, whether or not it was gone before', () => {
    expect(at({ ...gone, classified: false })).toBe(null);
    expect(at({ classified: true })).toBe(null);
    expect(at({ classified: true, goneSinceMs: 1_000 })).toBe(null);
  });

  test('is the end of a reimbursement’s patience for what it waits for, and for that alone', () => {
    expect(at({}, [refundOf(1n)])).toBe(WINDOW_END_MS + UNBOOKED_GONE_MS);
    expect(at({}, [refundOf(2n), refundOf(1n)])).toBe(WINDOW_END_MS + UNBOOKED_GONE_MS);
    expect(at({}, [refundOf(2n)])).toBe(null);
    expect(at({}, [{ ...refundOf(1n), isHeld: true }])).toBe(null);
    expect(at({ state: 'mined', height: TIP }, [refundOf(1n)])).toBe(null);
    expect(at({})).toBe(null);
  });
});

describe('what counts', () => {
  test('is every payment that is worth a unit, pending and credited', () => {
    const pending = newCase([onTime(1, 1n)], { transaction: { status: 'pending' } });
    expect(countingPayments(pending)).toHaveLength(1);
    const succeeded = newCase([onTime(1, 1n, { partKey: 'dep:1', credited: 1n })], { transaction: { status: 'succeeded' } });
    expect(countingPayments(succeeded)).toHaveLength(1);
  });

  test('shows no confirmations of another currency, but in review and where it is declined', () => {
    const other = newPayment(1, { ...judged, currency: 'LTC', state: 'mined', height: 900 });
    const shown = (status: 'cancelled' | 'timedout' | 'review' | 'declined') =>
      youngestCounting(newCase([other], { transaction: { status } }), []);
    expect([shown('cancelled'), shown('timedout')]).toEqual([null, null]);
    expect([shown('review'), shown('declined')]).toEqual([
      { height: 900, currency: 'LTC' },
      { height: 900, currency: 'LTC' },
    ]);
  });
});
