// While our nodes of a chain contradict each other: a payment worth more than the limit waits, whichever rule would book it; everything
// else continues, and only the booking waits.
import { describe, expect, test } from 'vitest';
import { START_HEIGHT } from '../../support/chain-truth.ts';
import { HOUR, judgedTransaction, W } from '../../support/judged-transaction.ts';

const LIMIT = 1_000_00n;
const LARGE = { usd: 1_500_00n };

describe('a contested chain', () => {
  test('a price above the limit stays pending until the nodes agree, one at the limit is booked', () => {
    for (const [usd, during] of [
      [LIMIT + 1n, 'pending'],
      [LIMIT, 'succeeded'],
    ] as const) {
      const judged = judgedTransaction({ usd });
      judged.contest(LIMIT);
      judged.pay();
      judged.mine(6);
      expect(judged.status).toBe(during);
      judged.contest(null);
      expect(judged.status).toBe('succeeded');
    }
  });

  test('what is just enough is not declined as too little meanwhile', () => {
    const judged = judgedTransaction(LARGE);
    judged.contest(LIMIT);
    judged.pay({ amount: 14_950_00n });
    judged.mine(6);
    judged.afterGrace();
    expect(judged.status).toBe('pending');
    judged.contest(null);
    expect(judged.status).toBe('succeeded');
  });

  test('several payments of one price are one amount', () => {
    const judged = judgedTransaction(LARGE);
    judged.contest(LIMIT);
    for (let i = 0; i < 3; i++) judged.pay({ amount: 5_000_00n });
    judged.mine(6);
    expect(judged.status).toBe('pending');
    judged.contest(null);
    expect(judged.status).toBe('succeeded');
  });

  test('suspense waits as well, and so does the acceptance of what lies there', () => {
    const judged = judgedTransaction({ ...LARGE, latePolicy: 'review' });
    judged.until(W + HOUR);
    judged.contest(LIMIT);
    judged.pay();
    judged.mine(6);
    expect([judged.status, judged.suspense()]).toEqual(['review', 0n]);
    judged.contest(null);
    expect(judged.suspense()).toBe(15_000_00n);
    judged.contest(LIMIT);
    expect(() => judged.accept()).toThrow(/contradict/);
    judged.contest(null);
    judged.accept();
    expect(judged.status).toBe('succeeded');
  });

  test('a late payment above the limit is not accepted by policy meanwhile', () => {
    const judged = judgedTransaction(LARGE);
    judged.until(W + HOUR);
    judged.pay();
    judged.contest(LIMIT);
    judged.mine(6);
    expect(judged.status).toBe('review');
    judged.contest(null);
    expect(judged.status).toBe('succeeded');
  });

  test('the other chain is not held up, a payment without a rate is', () => {
    const judged = judgedTransaction(LARGE);
    judged.contest(LIMIT, 'LTC');
    judged.pay();
    judged.mine(6);
    expect(judged.status).toBe('succeeded');
    judged.rate(null, 'LTC');
    judged.pay({ currency: 'LTC', amount: 10n });
    judged.mine(12, 'LTC');
    expect(judged.suspense('LTC')).toBe(0n);
    judged.contest(null, 'LTC');
    expect(judged.suspense('LTC')).toBe(10n);
  });

  test('a loss is taken back at once', () => {
    const judged = judgedTransaction(LARGE);
    judged.pay();
    judged.mine(6);
    judged.contest(LIMIT);
    judged.reorg(6, 'dead');
    expect(judged.status).toBe('review');
  });
});

describe('a chain of which two nodes hold only a part', () => {
  test('a price above the limit is booked at its required depth below the highest block that two hold, one at the limit at once', () => {
    for (const [usd, statuses] of [
      [LIMIT + 1n, ['pending', 'pending', 'succeeded']],
      [LIMIT, ['succeeded', 'succeeded', 'succeeded']],
    ] as const) {
      const judged = judgedTransaction({ usd });
      judged.contest(LIMIT, 'BTC', START_HEIGHT);
      judged.pay();
      judged.mine(8);
      const during = [judged.status];
      for (const held of [2, 3]) {
        judged.contest(LIMIT, 'BTC', START_HEIGHT + held);
        during.push(judged.status);
      }
      expect(during).toEqual(statuses);
    }
  });

  test('what completes a price late has on that part the depth of what it is worth, and that of the price', () => {
    const worthMuch = judgedTransaction({ usd: 50_00n });
    worthMuch.contest(LIMIT, 'BTC', START_HEIGHT);
    worthMuch.pay({ amount: 25_000n });
    worthMuch.afterGrace();
    // 25 USD are missing, and 2,500 come
    worthMuch.rate(10_000_000n);
    worthMuch.pay({ amount: 25_000n });
    worthMuch.mine(8);
    const priceDeeper = judgedTransaction(LARGE);
    priceDeeper.contest(LIMIT, 'BTC', START_HEIGHT);
    priceDeeper.pay({ amount: 14_900_00n });
    priceDeeper.mine();
    priceDeeper.afterGrace();
    priceDeeper.pay({ amount: 100_00n });
    priceDeeper.mine(8);
    const allLate = judgedTransaction({ usd: 50_00n });
    allLate.contest(LIMIT, 'BTC', START_HEIGHT);
    allLate.pay({ amount: 1_000n });
    allLate.afterGrace();
    allLate.rate(10_000_000n);
    allLate.mineOnly(allLate.pay());
    allLate.mineEmpty(7);
    const during = [1, 2, 3, 4].map((held) => {
      for (const judged of [worthMuch, priceDeeper, allLate]) judged.contest(LIMIT, 'BTC', START_HEIGHT + held);
      return [worthMuch.status, priceDeeper.status, allLate.status];
    });
    expect(during).toEqual([
      ['pending', 'pending', 'pending'],
      ['pending', 'pending', 'pending'],
      ['succeeded', 'pending', 'succeeded'],
      ['succeeded', 'succeeded', 'succeeded'],
    ]);
  });

  test('what is in suspense is accepted at the depth that two hold', () => {
    const judged = judgedTransaction({ ...LARGE, latePolicy: 'review' });
    judged.until(W + HOUR);
    judged.pay();
    judged.mine(6);
    expect(judged.suspense()).toBe(15_000_00n);
    judged.contest(LIMIT, 'BTC', START_HEIGHT + 2);
    expect(() => judged.accept()).toThrow(/only one has these blocks/);
    judged.contest(LIMIT, 'BTC', START_HEIGHT + 3);
    judged.accept();
    expect(judged.status).toBe('succeeded');
  });

  test('a lock that one node reports books nothing above the limit before two hold the block', () => {
    const judged = judgedTransaction({ ...LARGE, currency: 'DASH' });
    judged.contest(LIMIT, 'DASH', START_HEIGHT);
    const payment = judged.pay();
    judged.mine(1);
    judged.lock(payment, 'chainlock');
    expect(judged.status).toBe('pending');
    judged.contest(LIMIT, 'DASH', START_HEIGHT + 1);
    expect(judged.status).toBe('succeeded');
  });

  test('nor does one let anything be accepted beside what two hold', () => {
    const judged = judgedTransaction({ ...LARGE, currency: 'DASH', latePolicy: 'review' });
    judged.until(W + HOUR);
    judged.pay({ amount: 14_000_00n });
    judged.mine(8);
    judged.lock(judged.pay({ amount: 1_000_00n }), 'chainlock');
    judged.mine();
    expect(judged.suspense()).toBe(15_000_00n);
    judged.contest(LIMIT, 'DASH', START_HEIGHT + 8);
    expect(() => judged.accept()).toThrow(/only one has these blocks/);
    judged.contest(LIMIT, 'DASH', START_HEIGHT + 9);
    judged.accept();
    expect(judged.status).toBe('succeeded');
  });
});
