// Is it enough: amount due, tolerance and required depth, what is credited and what goes to suspense, and short payments (rules 4, 5, 6,
// 21). Late payments are in late.test.ts.
import { describe, expect, test } from 'vitest';
import { requiredDepth } from '../../../src/core/confirmations.ts';
import { toleranceUsd } from '../../../src/core/judge/payments.ts';
import { HOUR, judgedTransaction, MINUTE, QUOTE, W } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('amount due and tolerance', () => {
  test.each([
    [99_00n, 500, 4_95n],
    [100_00n, 500, 5_00n],
    [100_01n, 500, 5_00n],
    [1_000_00n, 500, 5_00n],
    [1_000_00n, 0, 0n],
  ])('of %d cents %d basis points are %d cents, at most 5 USD, exactly', (usdMinor, toleranceBps, cents) => {
    const { transaction } = judgedTransaction();
    expect(toleranceUsd({ ...transaction, usdMinor, toleranceBps })).toBe(cents * 10_000n);
  });

  test.each([
    [0, 50_00n, 50_000n],
    [100, 50_00n, 49_500n],
    [500, 50_00n, 47_500n],
    [100, 500_00n, 495_000n],
    [100, 501_00n, 496_000n],
    [500, 99_99n, 99_990n - 4_999n],
    [500, 100_00n, 95_000n],
    [500, 2_000_00n, 1_995_000n],
  ] as const)('with %i basis points of %i cents, %i satoshi are enough and one less is not', (toleranceBps, usd, least) => {
    for (const [amount, status] of [
      [least, 'succeeded'],
      [least - 1n, 'declined'],
    ] as const) {
      const judged = judgedTransaction({ toleranceBps, usd });
      judged.pay({ amount });
      judged.mine(6);
      judged.afterGrace();
      expect([judged.status, judged.verdict.receivedMinor]).toEqual([status, amount]);
      expect(judged.available()).toBe(status === 'succeeded' ? amount : 0n);
      expect(judged.suspense()).toBe(status === 'succeeded' ? 0n : amount);
    }
  });

  test.each([
    ['amount due + tolerance: all of it', 50_500n, 50_500n],
    ['one unit above: exactly the amount due', 50_501n, 50_000n],
    ['ten times: exactly the amount due', 500_000n, 50_000n],
  ] as const)('at %s is credited', (_what, amount, credited) => {
    const judged = judgedTransaction();
    judged.pay({ amount });
    judged.mine(3);
    expect([judged.available(), judged.suspense()]).toEqual([credited, amount - credited]);
  });

  test('of several payments the first ones are credited, and the rest of the last goes to suspense', () => {
    const judged = judgedTransaction();
    for (const amount of [30_000n, 15_000n, 30_000n]) judged.pay({ amount });
    judged.mine();
    expect(judged.payments.map((payment) => [payment.inAvailable, payment.inSuspense])).toEqual([
      [30_000n, 0n],
      [15_000n, 0n],
      [5_000n, 25_000n],
    ]);
  });

  test('a second payment still below R when the first suffices is an extra one', () => {
    const judged = judgedTransaction();
    const first = judged.pay();
    judged.pay({ amount: HALF });
    judged.mineOnly(first);
    expect([judged.status, judged.announced()]).toEqual(['succeeded', ['transaction.extra_payment']]);
    judged.mine();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', judged.amountDue, HALF]);
    expect(judged.announced()).toHaveLength(1);
  });
});

describe('R', () => {
  test.each([
    ['BTC', 99_99n, 1],
    ['BTC', 100_00n, 2],
    ['BTC', 999_99n, 2],
    ['BTC', 1_000_00n, 3],
    ['BTC', 9_999_99n, 3],
    ['BTC', 10_000_00n, 6],
    ['LTC', 99_99n, 2],
    ['LTC', 100_00n, 3],
    ['LTC', 1_000_00n, 6],
    ['LTC', 10_000_00n, 12],
    ['BCH', 100_00n, 3],
    ['DOGE', 50_00n, 6],
    ['DOGE', 10_000_00n, 60],
  ] as const)('%s of %i cents needs %i confirmations, not one less', (currency, usd, depth) => {
    expect(requiredDepth(currency, usd).depth).toBe(depth);
    const judged = judgedTransaction({ currency, usd });
    judged.pay();
    judged.mine(depth - 1);
    expect(judged.status).toBe('pending');
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });

  test.each([
    ['an InstantSend lock', 50_00n, 'instantsend', 'succeeded'],
    ['an InstantSend lock for 1,000 USD', 1_000_00n, 'instantsend', 'pending'],
    ['a ChainLock for 1,000 USD', 1_000_00n, 'chainlock', 'succeeded'],
  ] as const)('DASH: %s', (_what, usd, lock, status) => {
    const judged = judgedTransaction({ currency: 'DASH', usd });
    judged.pay({ lock });
    expect(judged.status).toBe(status);
    judged.mine(requiredDepth('DASH', usd).depth);
    expect(judged.status).toBe('succeeded');
  });

  test('a lock that comes later counts when it comes', () => {
    const judged = judgedTransaction({ currency: 'DASH' });
    const tx = judged.pay();
    expect(judged.status).toBe('pending');
    judged.lock(tx, 'instantsend');
    expect(judged.status).toBe('succeeded');
  });

  test.each([
    ['BTC', 100],
    ['DOGE', 240],
  ] as const)('a coinbase output of %s counts only when mature', (currency, maturity) => {
    const judged = judgedTransaction({ currency });
    judged.pay({ coinbase: true });
    judged.mine(maturity - 2);
    expect(judged.status).toBe('pending');
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });

  test('a payment goes to suspense at the R of its own value, not of the transaction', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.until(W + HOUR);
    judged.pay({ amount: 1_000_000n }); // 1,000 USD
    judged.mine(2);
    expect(judged.suspense()).toBe(0n);
    judged.mine();
    expect(judged.suspense()).toBe(1_000_000n);
  });
});

describe('short (rule 6)', () => {
  test('not before W + 60 s has passed, and only when every payment has R', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay({ amount: HALF });
    judged.mine(2);
    judged.until(W + MINUTE);
    expect(judged.status).toBe('pending');
    judged.pay({ amount: HALF });
    judged.until(W + MINUTE + 1);
    judged.mine();
    expect(judged.status).toBe('pending');
    judged.mine();
    expect([judged.status, judged.rules(), judged.suspense()]).toEqual(['declined', [2, 6], 2n * HALF]);
  });

  test('a conflicted payment is not waited for', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.mine();
    const other = judged.pay({ amount: HALF });
    judged.doubleSpend(other);
    judged.afterGrace();
    expect([judged.status, judged.suspense()]).toEqual(['declined', HALF]);
  });
});

test('at the tests’ price a cent is ten satoshi', () => {
  expect(judgedTransaction().transaction.rate).toBe(QUOTE);
  expect(judgedTransaction().amountDue).toBe(50_000n);
});
