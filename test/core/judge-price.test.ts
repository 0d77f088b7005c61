// Is it enough: amount due, tolerance and required depth, what is credited and what goes to suspense, and short payments (rules 4, 5, 6,
// 21). Late payments are in judge-late.
import { describe, expect, test } from 'vitest';
import { requiredDepth } from '../../src/core/confirmations.ts';
import { HOUR, judgedTransaction, MINUTE, QUOTE, W } from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('amount due and tolerance', () => {
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
      const world = judgedTransaction({ toleranceBps, usd });
      world.pay({ amount });
      world.mine(6);
      world.afterGrace();
      expect([world.status, world.verdict.receivedMinor]).toEqual([status, amount]);
      expect(world.available()).toBe(status === 'succeeded' ? amount : 0n);
      expect(world.suspense()).toBe(status === 'succeeded' ? 0n : amount);
    }
  });

  test.each([
    ['amount due + tolerance: all of it', 50_500n, 50_500n],
    ['one unit above: exactly the amount due', 50_501n, 50_000n],
    ['ten times: exactly the amount due', 500_000n, 50_000n],
  ] as const)('at %s is credited', (_what, amount, credited) => {
    const world = judgedTransaction();
    world.pay({ amount });
    world.mine(3);
    expect([world.available(), world.suspense()]).toEqual([credited, amount - credited]);
  });

  test('of several payments the first ones are credited, and the rest of the last goes to suspense', () => {
    const world = judgedTransaction();
    for (const amount of [30_000n, 15_000n, 30_000n]) world.pay({ amount });
    world.mine();
    expect(world.payments.map((payment) => [payment.inAvailable, payment.inSuspense])).toEqual([
      [30_000n, 0n],
      [15_000n, 0n],
      [5_000n, 25_000n],
    ]);
  });

  test('a second payment still below R when the first suffices is an extra one', () => {
    const world = judgedTransaction();
    const first = world.pay();
    world.pay({ amount: HALF });
    world.mineOnly(first);
    expect([world.status, world.announced()]).toEqual(['succeeded', ['transaction.extra_payment']]);
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', world.amountDue, HALF]);
    expect(world.announced()).toHaveLength(1);
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
    const world = judgedTransaction({ currency, usd });
    world.pay();
    world.mine(depth - 1);
    expect(world.status).toBe('pending');
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test.each([
    ['an InstantSend lock', 50_00n, 'instantsend', 'succeeded'],
    ['an InstantSend lock for 1,000 USD', 1_000_00n, 'instantsend', 'pending'],
    ['a ChainLock for 1,000 USD', 1_000_00n, 'chainlock', 'succeeded'],
  ] as const)('DASH: %s', (_what, usd, lock, status) => {
    const world = judgedTransaction({ currency: 'DASH', usd });
    world.pay({ lock });
    expect(world.status).toBe(status);
    world.mine(requiredDepth('DASH', usd).depth);
    expect(world.status).toBe('succeeded');
  });

  test('a lock that comes later counts when it comes', () => {
    const world = judgedTransaction({ currency: 'DASH' });
    const tx = world.pay();
    expect(world.status).toBe('pending');
    world.lock(tx, 'instantsend');
    expect(world.status).toBe('succeeded');
  });

  test.each([
    ['BTC', 100],
    ['DOGE', 240],
  ] as const)('a coinbase output of %s counts only when mature', (currency, maturity) => {
    const world = judgedTransaction({ currency });
    world.pay({ coinbase: true });
    world.mine(maturity - 2);
    expect(world.status).toBe('pending');
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test('a payment goes to suspense at the R of its own value, not of the transaction', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.until(W + HOUR);
    world.pay({ amount: 1_000_000n }); // 1,000 USD
    world.mine(2);
    expect(world.suspense()).toBe(0n);
    world.mine();
    expect(world.suspense()).toBe(1_000_000n);
  });
});

describe('short (rule 6)', () => {
  test('not before W + 60 s has passed, and only when every payment has R', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay({ amount: HALF });
    world.mine(2);
    world.until(W + MINUTE);
    expect(world.status).toBe('pending');
    world.pay({ amount: HALF });
    world.until(W + MINUTE + 1);
    world.mine();
    expect(world.status).toBe('pending');
    world.mine();
    expect([world.status, world.rules(), world.suspense()]).toEqual(['declined', [2, 6], 2n * HALF]);
  });

  test('a conflicted payment is not waited for', () => {
    const world = judgedTransaction();
    world.pay({ amount: HALF });
    world.mine();
    const other = world.pay({ amount: HALF });
    world.doubleSpend(other);
    world.afterGrace();
    expect([world.status, world.suspense()]).toEqual(['declined', HALF]);
  });
});

test('the quote of the small world makes a cent ten satoshi', () => {
  expect(judgedTransaction().transaction.rate).toBe(QUOTE);
  expect(judgedTransaction().amountDue).toBe(50_000n);
});
