// When the judge wants to look at a transaction again though nothing has happened to it: at the end of its window and of its grace, and for a
// price that nobody has yet.
import { describe, expect, test } from 'vitest';
import type { Case, Payment } from '../../../src/core/judge/case.ts';
import { judge } from '../../../src/core/judge/judge.ts';
import { DAY, judgedTransaction, MINUTE, SECOND, W } from '../../support/judged-transaction.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

test('with too little it is due when its window ends, and declined once the 60 s after that have passed (rule 6)', () => {
  const judged = judgedTransaction();
  judged.pay({ amount: 25_000n });
  judged.mine();
  judged.until(W - 1);
  expect([judged.status, judged.verdict.dueAtMs]).toEqual(['pending', W]);
  for (const at of [W, W + MINUTE]) {
    judged.until(at);
    expect([judged.status, judged.verdict.dueAtMs]).toEqual(['pending', W + MINUTE + 1]);
  }
  judged.until(W + MINUTE + 1);
  expect([judged.status, judged.verdict.dueAtMs]).toEqual(['declined', null]);
});

const chainAt = (timeMs: number): Case['chains'] => new Map([['BTC', { tipHeight: TIP, timeMs }]]);

describe('for a price', () => {
  const AFTER = WINDOW_END_MS + 2 * MINUTE;
  const dueOf = (payments: readonly Payment[], known: Parameters<typeof newCase>[1]): number | null =>
    judge(newCase(payments, { nowMs: AFTER, chains: chainAt(AFTER), ...known })).dueAtMs;
  const review = { transaction: { status: 'review', reviewCause: 'late' } } as const;
  const late = { seenAtMs: AFTER, caughtUpAtMs: AFTER, classified: true, present: true } as const;
  const valued = newPayment(1, { ...late, valueRate: PRICE });
  const unvalued = newPayment(2, { ...late, arrivalRate: null, valueRate: null });

  test('of a payment that is there and has none it looks every five seconds, whatever else has come', () => {
    expect(dueOf([valued, unvalued], review)).toBe(AFTER + 5 * SECOND);
    expect(dueOf([unvalued], review)).toBe(AFTER + 5 * SECOND);
  });

  test('of none where all have one, or what has none is not there', () => {
    expect(dueOf([valued], review)).toBeNull();
    expect(dueOf([valued, { ...unvalued, state: 'conflicted', conflictTxid: 'rival' }], review)).toBeNull();
  });

  test('it looks on the clock of the chain, where that is behind', () => {
    const behind = { ...review, chains: chainAt(AFTER - MINUTE) } as const;
    expect(dueOf([unvalued], behind)).toBe(AFTER - MINUTE + 5 * SECOND);
  });

  describe('of the block that completes a price more than a day after its window (rule 24)', () => {
    const NOW = WINDOW_END_MS + 2 * DAY;
    const paid = newPayment(1, {
      state: 'mined',
      height: TIP,
      amount: 50_000n,
      onTimeMinor: 50_000n,
      classified: true,
      present: true,
      valueRate: PRICE,
    });
    const block = (timeMs: number, rate: typeof PRICE | null): Partial<Case> => ({
      nowMs: NOW,
      chains: chainAt(NOW),
      blocks: new Map([
        [TIP, { timeMs, rate }],
        [TIP + 1, { timeMs: NOW, rate: PRICE }],
      ]),
    });

    test('while the transaction is pending for that', () => {
      expect(dueOf([paid], { ...block(NOW, null), transaction: { status: 'pending' } })).toBe(NOW + 5 * SECOND);
    });

    test('not where the price is known, the block is of the first day, or the transaction waits for nothing', () => {
      const shallow = { ...paid, height: null, state: 'mempool' } as const;
      const pending = { transaction: { status: 'pending' } } as const;
      expect(dueOf([shallow], { ...block(NOW, PRICE), ...pending })).toBeNull();
      expect(dueOf([shallow], { ...block(WINDOW_END_MS + DAY, null), ...pending })).toBeNull();
      expect(dueOf([valued], { ...block(NOW, null), ...review })).toBeNull();
    });
  });
});
