// One rule at a time, in states that the rules before it seldom leave: what must hold it back, and what must not.
import { describe, expect, test } from 'vitest';
import type { Case, CaseTransaction, Payment } from '../../../src/core/judge/case.ts';
import { deepEnough } from '../../../src/core/judge/late-block.ts';
import { acceptLate, book, closeAfterLookup, returnFromLoss, settle, takeBackLost } from '../../../src/core/judge/rules.ts';
import { LOOKUP_AFTER_MS, WINDOW_MS } from '../../../src/core/judge/times.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const there = { state: 'mined', classified: true, present: true, valueRate: PRICE } as const;
const deep = (id: number, amount: bigint, known: Partial<Payment> = {}): Payment =>
  newPayment(id, { ...there, amount, height: TIP - 200, partKey: `dep:${id}`, inSuspense: amount, ...known });

describe('a look-up (rule 8)', () => {
  const dayAfterMs = WINDOW_END_MS - WINDOW_MS + LOOKUP_AFTER_MS;
  test.each([
    ['of the day after counts', dayAfterMs, 'timedout_checked'],
    ['of a millisecond before is made again', dayAfterMs - 1, 'timedout'],
    ['that was never made is wanted', null, 'timedout'],
  ] as const)('%s', (_what, lookedUpAtMs, status) => {
    const chains: Case['chains'] = new Map([['BTC', { tipHeight: TIP, timeMs: dayAfterMs }]]);
    const it = newCase([], { nowMs: dayAfterMs, chains, transaction: { status: 'timedout', lookedUpAtMs } });
    expect(closeAfterLookup(it)).toBe(true);
    expect([it.transaction.status, it.transaction.lookupWanted]).toEqual([status, status === 'timedout']);
  });
});

describe('acceptance by policy (rule 11)', () => {
  const late = (payments: readonly Payment[], agreedHeight?: number): Case => {
    const agreed = agreedHeight === undefined ? {} : { agreed: { height: agreedHeight, limitMinor: 0n } };
    const chains: Case['chains'] = new Map([['BTC', { tipHeight: TIP, timeMs: WINDOW_END_MS, ...agreed }]]);
    return newCase(payments, { chains, transaction: { status: 'review', reviewCause: 'late' } });
  };

  test('waits until the worth of what lies in suspense is known', () => {
    expect(acceptLate(late([deep(1, 50_000n)]))).toBe(true);
    expect(acceptLate(late([deep(1, 50_000n, { valueRate: null, arrivalRate: null })]))).toBe(false);
  });

  test('waits while two nodes do not hold the blocks', () => {
    expect(acceptLate(late([deep(1, 50_000n)], -1))).toBe(false);
    expect(acceptLate(late([deep(1, 50_000n)], TIP))).toBe(true);
  });

  test('needs something to accept, if only the last unit', () => {
    expect(acceptLate(late([deep(1, 50_000n, { inSuspense: 0n, inAvailable: 50_000n })]))).toBe(false);
    expect(acceptLate(late([deep(1, 50_000n, { inSuspense: 1n, inAvailable: 49_999n })]))).toBe(true);
  });

  test('is not held up by the unknown worth of what is not booked', () => {
    const unbooked = deep(2, 10n, { partKey: null, inSuspense: 0n, valueRate: null });
    expect(acceptLate(late([deep(1, 50_000n), unbooked]))).toBe(true);
  });
});

describe('the way back from a loss (rule 17)', () => {
  const lost = (payments: readonly Payment[], transaction: Partial<CaseTransaction> = {}): Case =>
    newCase(payments, { transaction: { status: 'review', reviewCause: 'loss', ...transaction } });
  const credited = (id: number, amount: bigint, known: Partial<Payment> = {}) =>
    deep(id, amount, { inSuspense: 0n, inAvailable: amount, credited: amount, ...known });
  const missing = newPayment(9, { ...there, state: 'conflicted', present: false, wasLost: true });

  test('needs something that is the merchant’s, if only one unit of what is all back', () => {
    const sentBack = credited(1, 1_000n, { inAvailable: 0n, sentBack: 1_000n });
    expect(returnFromLoss(lost([sentBack]))).toBe(false);
    expect(returnFromLoss(lost([{ ...sentBack, inAvailable: 1n, sentBack: 999n }]))).toBe(true);
  });

  test('is open as soon as what is credited is amount due − tolerance, and not a unit before', () => {
    expect(returnFromLoss(lost([credited(1, 49_500n), missing]))).toBe(true);
    expect(returnFromLoss(lost([credited(1, 49_499n), missing]))).toBe(false);
  });
});

test('a booked payment that is lost is reversed, and not there any more', () => {
  const payment = deep(1, 50_000n, { state: 'conflicted', suspended: 50_000n });
  expect(takeBackLost(newCase([payment]))).toBe(true);
  expect([payment.partKey, payment.present]).toEqual([null, false]);
});

describe('a price is booked (rule 5)', () => {
  /** The payment that pays the price, and another above it. */
  const booked = (portionLeft: number, known: Partial<Payment> = {}) => {
    const unbooked = { partKey: null, inSuspense: 0n } as const;
    const payments = [
      deep(1, 50_000n, { ...unbooked, onTimeMinor: 50_000n }),
      deep(2, 20_000n, { ...unbooked, onTimeMinor: 20_000n, ...known }),
    ];
    const it = newCase(payments, { portionLeft, transaction: { status: 'confirmed' } });
    for (const running = book(it); running.next().done !== true; );
    return [payments.map(({ partKey }) => partKey !== null), it.portionLeft, it.more === true, it.steps.map(({ kind }) => kind)];
  };

  test('with what is above it where the verdict has room for that, and without where not', () => {
    expect(booked(1)).toEqual([[true, true], 0, false, ['post', 'status']]);
    expect(booked(0)).toEqual([[true, false], 0, true, ['post', 'status']]);
  });

  test('whatever the room, with all that restores an earlier loss', () => {
    expect(booked(0, { owed: 1n })).toEqual([[true, true], 0, false, ['post', 'status']]);
  });
});

test('nothing settles while a credited payment is not final, to the last unit of it (rule 19)', () => {
  const credited = (id: number, height: number, inAvailable: bigint) =>
    deep(id, 25_000n, { height, inSuspense: 0n, inAvailable, credited: inAvailable });
  const settles = (payments: readonly Payment[]) =>
    settle(newCase(payments, { transaction: { status: 'succeeded', succeededAtMs: 0 } }));
  expect(settles([credited(1, TIP - 200, 25_000n), credited(2, TIP - 200, 25_000n)])).toBe(true);
  expect(settles([credited(1, TIP - 200, 25_000n), credited(2, TIP, 25_000n)])).toBe(false);
  expect(settles([credited(1, TIP - 200, 25_000n), credited(2, TIP, 1n)])).toBe(false);
});

test('a price is complete to the last unit that is deep enough (rule 4)', () => {
  const paid = (amount: bigint) => deep(Number(amount), amount, { partKey: null, inSuspense: 0n, onTimeMinor: amount });
  const complete = (...amounts: bigint[]) =>
    deepEnough(newCase(amounts.map(paid), { transaction: { status: 'pending', toleranceBps: 0 } }))?.total ?? null;
  expect([complete(49_999n, 1n), complete(49_999n)]).toEqual([50_000n, null]);
});
