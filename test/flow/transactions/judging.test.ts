// One transaction before the judge, without a database: what a verdict leaves as it was, how much of it is written at once, what the
// merchant's decision sees, and which confirmations are shown.
import { describe, expect, test } from 'vitest';
import type { Case, CaseTransaction, Payment } from '../../../src/core/judge/case.ts';
import { cancel } from '../../../src/core/judge/resolve.ts';
import type { Context } from '../../../src/flow/context.ts';
import { decideInTurns, decideOn, type Facts } from '../../../src/flow/transactions/judging.ts';
import { newPayment, newTransaction, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const SETTLEMENT_SECONDS = 3_600;
const ctx = {
  ports: { clock: { now: () => WINDOW_END_MS } },
  feeBps: 100,
  settlementSeconds: SETTLEMENT_SECONDS,
} as unknown as Context;
const view = { tipHeight: TIP, timeMs: WINDOW_END_MS };

function factsOf(payments: readonly Payment[], transaction: Partial<CaseTransaction> = {}, isUnwritten = false): Facts {
  return {
    locked: {
      transaction: newTransaction(transaction),
      verdict: { receivedMinor: 0n, youngest: null, dueAtMs: null },
      marks: [],
      refunds: [],
    },
    payments,
    chains: new Map([
      ['BTC', view],
      ['LTC', view],
    ]),
    blocks: new Map(),
    isUnwritten,
  };
}
const several = (count: number, known: Partial<Payment> = {}) => Array.from({ length: count }, (_, id) => newPayment(id, known));
const inBlock = (height: number): Partial<Payment> => ({
  state: 'mined',
  height,
  blockHash: `block ${height}`,
  blockTimeMs: WINDOW_END_MS,
});
/** The judge has taken note of it, and nothing more is due. */
const noted: Partial<Payment> = { classified: true, present: true, onTimeMinor: 1_000n, counted: true, valueRate: PRICE };
/** Its next height to look at is another one than a verdict says. */
const looked: Partial<Payment> = { ...noted, dueHeight: 7 };
const balances = () => new Map([['BTC' as const, { available: 0n, receivable: 0n }]]);

describe('a verdict', () => {
  const paid = () => factsOf(several(2, { amount: 25_000n, ...inBlock(TIP) }), { status: 'pending' });

  test('is asked of copies: what was read stays as it was', () => {
    const facts = paid();
    const before = structuredClone(facts);
    const judged = decideOn(ctx, facts, balances());
    expect(judged.transaction.status).toBe('succeeded');
    expect(facts).toEqual(before);
  });

  test('is the same at once and in turns', async () => {
    expect(await decideInTurns(ctx, paid(), balances(), {})).toEqual(decideOn(ctx, paid(), balances()));
  });

  test('says that a transaction is settled so many seconds after it succeeded', () => {
    const { verdict } = decideOn(ctx, factsOf([], { status: 'succeeded', succeededAtMs: WINDOW_END_MS }), null);
    expect(verdict.dueAtMs).toBe(WINDOW_END_MS + SETTLEMENT_SECONDS * 1_000);
  });

  test('is not asked for while an earlier one is not written to all payments', () => {
    expect(() => decideOn(ctx, factsOf([], {}, true), null)).toThrow('a verdict on txn_1 is not written yet');
  });
});

describe('the merchant’s decision', () => {
  test('is made on what was due before it, and what it changes is judged', async () => {
    const facts = factsOf(several(1, { amount: 20_000n, seenAtMs: WINDOW_END_MS - 1, caughtUpAtMs: WINDOW_END_MS - 1 }));
    let seen: string | null = null;
    const decision = (it: Case): void => {
      seen = it.transaction.status;
      cancel(it);
    };
    const judged = await decideInTurns(ctx, facts, null, { decision });
    expect(seen).toBe('pending');
    expect(judged.steps.flatMap((step) => (step.kind === 'status' ? [step.to] : []))).toEqual(['pending', 'cancelled', 'review']);
  });
});

describe('of a transaction of very many payments', () => {
  const written = async (facts: Facts, portion: number, locked = balances()) => {
    const { payments, later, more } = await decideInTurns(ctx, facts, locked, { portion });
    return { now: payments.length, later: later.length, more };
  };

  test('so many are taken note of as the portion has room for, and the rest is due again', async () => {
    const facts = factsOf(several(5), { status: 'pending' });
    expect(await written(facts, 2)).toEqual({ now: 2, later: 0, more: true });
    expect(await written(facts, 5)).toEqual({ now: 5, later: 0, more: false });
  });

  test('what pays the price is decided at once, and written later where it is more than a portion', async () => {
    const payments = several(5, { ...noted, amount: 10_000n, onTimeMinor: 10_000n, ...inBlock(TIP) });
    const facts = factsOf(payments, { status: 'pending' });
    expect(await written(facts, 4)).toEqual({ now: 0, later: 5, more: true });
    expect(await written(facts, 5)).toEqual({ now: 5, later: 0, more: false });
    expect(await written(facts, 6)).toEqual({ now: 5, later: 0, more: false });
  });

  test('payments of which only the next look has changed fill the room that is left', async () => {
    const facts = factsOf(several(5, looked), { status: 'pending' });
    expect(await written(facts, 2)).toEqual({ now: 2, later: 0, more: true });
    expect(await written(facts, 5)).toEqual({ now: 5, later: 0, more: false });
    const both = factsOf([newPayment(9), ...several(3, looked)], { status: 'pending' });
    expect(await written(both, 3)).toEqual({ now: 3, later: 0, more: true });
    expect(await written(both, 4)).toEqual({ now: 4, later: 0, more: false });
  });

  test('none of those are written beside what is written later', async () => {
    const price = several(5, { ...noted, amount: 10_000n, onTimeMinor: 10_000n, ...inBlock(TIP) });
    const facts = factsOf([...price, newPayment(9, looked)], { status: 'pending' });
    expect(await written(facts, 4)).toEqual({ now: 0, later: 5, more: true });
  });
});

describe('the confirmations that are shown', () => {
  const shown = (payments: readonly Payment[], transaction: Partial<CaseTransaction> = {}) =>
    decideOn(ctx, factsOf(payments, { status: 'pending', ...transaction }), balances()).confirmations;
  const few = (id: number, height: number | null, known: Partial<Payment> = {}) =>
    newPayment(id, { ...noted, ...(height === null ? {} : inBlock(height)), ...known });

  test('are those of the youngest payment that counts', () => {
    expect(shown([])).toBe(0);
    expect(shown([few(1, null)])).toBe(0);
    expect(shown([few(1, TIP)])).toBe(1);
    expect(shown([few(1, TIP - 4), few(2, TIP - 2)])).toBe(3);
    expect(shown([few(1, TIP - 2), few(2, TIP, { currency: 'LTC' })])).toBe(3);
  });

  test('are none of a block above the last that was read', () => {
    expect(shown([few(1, TIP + 3)])).toBe(0);
  });

  test('in review are those of the youngest of all that are there', () => {
    const inReview = { status: 'review', reviewCause: 'late', latePolicy: 'review' } as const;
    const late = { onTimeMinor: 0n, valueRate: 1n };
    expect(shown([], inReview)).toBe(0);
    expect(shown([few(1, TIP - 1, late)], inReview)).toBe(2);
    expect(shown([few(1, TIP - 5, late), few(2, TIP - 3, { ...late, currency: 'LTC' })], inReview)).toBe(4);
    expect(shown([few(1, TIP - 5, late), few(2, null, { ...late, state: 'gone', goneSinceMs: 0 })], inReview)).toBe(6);
    expect(shown([few(1, TIP - 5, late), few(2, null, late)], inReview)).toBe(0);
  });
});
