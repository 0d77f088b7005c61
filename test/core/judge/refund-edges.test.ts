// Reimbursements at their edges: the last unit, two payments of which only one qualifies, and what each step tells.
import { describe, expect, test } from 'vitest';
import type { Case, Payment, Refund, RefundShare } from '../../../src/core/judge/case.ts';
import {
  endUnconfirmed,
  holdBooked,
  noteEnded,
  type RefundWanted,
  reimburse,
  releaseFinal,
} from '../../../src/core/judge/refunds.ts';
import { UNBOOKED_GONE_MS } from '../../../src/core/judge/times.ts';
import type { TransactionStatus } from '../../../src/core/transaction-states.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const there = { state: 'mined', height: TIP - 200, classified: true, present: true, valueRate: PRICE } as const;
const booked = (id: number, known: Partial<Payment>): Payment => newPayment(id, { ...there, partKey: `dep:${id}`, ...known });
const unconfirmed = (id: number, seenAtMs: number): Payment =>
  newPayment(id, { classified: true, present: true, valueRate: PRICE, seenAtMs });
const suspended = (units: bigint): RefundShare => ({ available: 0n, suspense: units });
const WANTED: RefundWanted = { id: 'r', currency: 'BTC', part: 'whole', least: 1n };
const balances = (available: bigint) => new Map([['BTC' as const, { available, receivable: 0n }]]);
const inStatus = (status: TransactionStatus, payments: readonly Payment[], known: Parameters<typeof newCase>[1] = {}): Case =>
  newCase(payments, { ...known, transaction: { status } });
function refundOf(shares: readonly (readonly [bigint, RefundShare])[], known: Partial<Refund> = {}): Refund {
  const total = shares.reduce((sum, [, share]) => sum + share.available + share.suspense, 0n);
  return { id: 'r', currency: 'BTC', part: 'whole', total, state: 'waiting', isHeld: true, shares: new Map(shares), ...known };
}

describe('a reimbursement', () => {
  test('takes the last unit of what is available, and the locked balance has it no more', () => {
    const it = inStatus('succeeded', [booked(1, { inAvailable: 1n })], { balances: balances(7n) });
    expect(reimburse(it, WANTED)).toMatchObject({ total: 1n, isHeld: true });
    expect(it.balances?.get('BTC')?.available).toBe(6n);
    expect(it.steps).toContainEqual({ kind: 'refund', id: 'r', change: 'taken' });
  });

  test('is refused where the balance lacks that unit', () => {
    const it = inStatus('succeeded', [booked(1, { inAvailable: 1n })], { balances: balances(0n) });
    expect(() => reimburse(it, WANTED)).toThrow('The available balance must cover');
  });

  test('of what lies in suspense alone needs no balance', () => {
    const it = inStatus('review', [booked(1, { inSuspense: 1_000n })], { balances: null });
    expect(reimburse(it, WANTED).total).toBe(1_000n);
  });

  test('of a decided transaction leaves out what is not booked yet: it is extra', () => {
    const payments = () => [booked(1, { inAvailable: 500n, inSuspense: 500n }), newPayment(2, there)];
    const taken = (status: TransactionStatus, part: Refund['part']) => {
      const it = inStatus(status, payments(), { balances: balances(1_000n) });
      return [...reimburse(it, { ...WANTED, part }).shares.keys()];
    };
    expect([taken('succeeded', 'whole'), taken('succeeded', 'excess'), taken('review', 'whole')]).toEqual([[1n], [1n], [1n, 2n]]);
  });

  test('waits for a payment that was lost and is back, if only a unit is owed for it', () => {
    const it = inStatus('review', [newPayment(1, { ...there, owed: 1n })]);
    expect(() => reimburse(it, WANTED)).toThrow('was lost is back');
  });

  test('says of what it has nothing, and what it cannot take', () => {
    const refused = (status: TransactionStatus, part: Refund['part']) => () =>
      reimburse(inStatus(status, []), { ...WANTED, part });
    expect(refused('pending', 'whole')).toThrow('pending; it cannot be reimbursed');
    expect(refused('pending', 'excess')).toThrow('pending; its excess cannot be reimbursed');
    expect(refused('succeeded', 'whole')).toThrow('Nothing of this transaction is here in BTC');
    expect(refused('succeeded', 'excess')).toThrow('Nothing of this transaction lies in suspense in BTC');
  });
});

describe('one that waits for its payments', () => {
  const waiting = refundOf([
    [1n, suspended(500n)],
    [2n, suspended(500n)],
  ]);

  test('ends where one of them does not lie where it was to be taken from', () => {
    const refund = { ...waiting, isHeld: false };
    const it = inStatus('review', [booked(1, { inSuspense: 500n }), booked(2, { inAvailable: 500n })], { refunds: [refund] });
    expect(holdBooked(it)).toBe(true);
    expect([it.refunds, it.steps]).toEqual([[], [{ kind: 'refund', id: 'r', change: 'lost' }]]);
  });

  test('says that it may leave once all of them are final', () => {
    const it = inStatus('review', [booked(1, {}), booked(2, {})], { refunds: [{ ...waiting }] });
    releaseFinal(it);
    expect([it.refunds[0]?.state, it.steps]).toEqual(['ready', [{ kind: 'refund', id: 'r', change: 'ready' }]]);
  });
});

describe('one that waits for what is unconfirmed', () => {
  const later = WINDOW_END_MS + UNBOOKED_GONE_MS;
  const ends = (payments: readonly Payment[], shares: readonly bigint[]): boolean => {
    const refund = refundOf(
      shares.map((id) => [id, suspended(1_000n)] as const),
      { isHeld: false },
    );
    const chains: Case['chains'] = new Map([['BTC', { tipHeight: TIP, timeMs: later }]]);
    return endUnconfirmed(inStatus('review', payments, { refunds: [refund], chains, nowMs: later }));
  };

  test('ends when one of its payments has waited too long, whatever the others do', () => {
    expect(ends([unconfirmed(1, WINDOW_END_MS), unconfirmed(2, later)], [1n, 2n])).toBe(true);
    expect(ends([unconfirmed(1, WINDOW_END_MS + 1), unconfirmed(2, later)], [1n, 2n])).toBe(false);
  });

  test('ends for other payments that are final with a unit in suspense, and for none without', () => {
    expect(ends([unconfirmed(1, later), booked(2, { inSuspense: 1n })], [1n])).toBe(true);
    expect(ends([unconfirmed(1, later), booked(2, { inAvailable: 1_000n })], [1n])).toBe(false);
  });
});

test('what has gone back in another currency is the whole only where not a unit of the transaction’s own is left', () => {
  const after = (left: Partial<Payment>) => {
    const refund = refundOf([[2n, suspended(5n)]], { currency: 'LTC', state: 'completed' });
    const other = booked(2, { currency: 'LTC', inRefund: 5n });
    const it = inStatus('review', [booked(1, left), other], { refunds: [refund] });
    noteEnded(it);
    return it.transaction.status;
  };
  expect([after({}), after({ inAvailable: 1n }), after({ inSuspense: 1n })]).toEqual(['reimbursed', 'review', 'review']);
});
