// While our nodes of a chain contradict each other: a payment worth more than the limit waits, whichever rule would book it; everything
// else continues, and only the booking waits.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, W } from '../support/judged-transaction.ts';

const LIMIT = 1_000_00n;
const LARGE = { usd: 1_500_00n };

describe('a contested chain', () => {
  test('a price above the limit stays pending until the nodes agree, one at the limit is booked', () => {
    for (const [usd, during] of [
      [LIMIT + 1n, 'pending'],
      [LIMIT, 'succeeded'],
    ] as const) {
      const world = judgedTransaction({ usd });
      world.contest(LIMIT);
      world.pay();
      world.mine(6);
      expect(world.status).toBe(during);
      world.contest(null);
      expect(world.status).toBe('succeeded');
    }
  });

  test('several payments of one price are one amount', () => {
    const world = judgedTransaction(LARGE);
    world.contest(LIMIT);
    for (let i = 0; i < 3; i++) world.pay({ amount: 5_000_00n });
    world.mine(6);
    expect(world.status).toBe('pending');
    world.contest(null);
    expect(world.status).toBe('succeeded');
  });

  test('suspense waits as well, and so does the acceptance of what lies there', () => {
    const world = judgedTransaction({ ...LARGE, latePolicy: 'review' });
    world.until(W + HOUR);
    world.contest(LIMIT);
    world.pay();
    world.mine(6);
    expect([world.status, world.suspense()]).toEqual(['review', 0n]);
    world.contest(null);
    expect(world.suspense()).toBe(15_000_00n);
    world.contest(LIMIT);
    expect(() => world.accept()).toThrow(/contradict/);
    world.contest(null);
    world.accept();
    expect(world.status).toBe('succeeded');
  });

  test('a late payment above the limit is not accepted by policy meanwhile', () => {
    const world = judgedTransaction(LARGE);
    world.until(W + HOUR);
    world.pay();
    world.contest(LIMIT);
    world.mine(6);
    expect(world.status).toBe('review');
    world.contest(null);
    expect(world.status).toBe('succeeded');
  });

  test('the other chain is not held up, a payment without a rate is', () => {
    const world = judgedTransaction(LARGE);
    world.contest(LIMIT, 'LTC');
    world.pay();
    world.mine(6);
    expect(world.status).toBe('succeeded');
    world.rate(null, 'LTC');
    world.pay({ currency: 'LTC', amount: 10n });
    world.mine(12, 'LTC');
    expect(world.suspense('LTC')).toBe(0n);
    world.contest(null, 'LTC');
    expect(world.suspense('LTC')).toBe(10n);
  });

  test('a loss is taken back at once', () => {
    const world = judgedTransaction(LARGE);
    world.pay();
    world.mine(6);
    world.contest(LIMIT);
    world.reorg(6, 'dead');
    expect(world.status).toBe('review');
  });
});
