// Late payments and their value: a late payment beside one on time (rule 23), and one that confirms late (rule 24).
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, judgedTransaction, SECOND, W } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('late, at the old price (rule 23)', () => {
  const late = (rate: bigint | null, amount: bigint, options: { toleranceBps?: number } = {}) => {
    const judged = judgedTransaction(options);
    judged.pay({ amount: HALF });
    judged.afterGrace();
    judged.rate(rate);
    judged.pay({ amount });
    return judged;
  };

  test.each([
    ['worth the missing dollars', 100_000n, HALF, 'succeeded'],
    ['worth them less the tolerance (24.50)', 98_000n, HALF, 'succeeded'],
    ['worth a cent less than that', 97_960n, HALF, 'declined'],
    ['too few payments, whatever they are worth', 200_000n, HALF - 501n, 'declined'],
    ['just enough payments', 104_000n, HALF - 500n, 'succeeded'],
    ['more payments at a lower price', 60_000n, 41_000n, 'succeeded'],
  ] as const)('a payment %s', (_what, rate, amount, status) => {
    const judged = late(rate, amount);
    expect(judged.status).toBe('pending');
    judged.mine(2);
    expect(judged.status).toBe(status);
    if (status === 'declined') expect(judged.suspense()).toBe(HALF + amount);
  });

  test.each([
    ['one payment', [HALF]],
    ['ten, each of which needs less', Array.from({ length: 10 }, () => HALF / 10n)],
  ] as const)('worth 500 USD when it arrived, it has the depth of that: %s', (_what, split) => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.afterGrace();
    judged.rate(2_000_000n);
    judged.pay({ split });
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['pending', 0n]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', 2n * HALF]);
  });

  test('that depth must lie on what two nodes hold, where it is worth more than the limit', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.afterGrace();
    judged.rate(2_000_000n);
    judged.pay({ amount: HALF });
    const { tipHeight } = judged.chain().view;
    judged.contest(100_00n, 'BTC', tipHeight + 1);
    judged.mine(2);
    expect([judged.status, judged.available()]).toEqual(['pending', 0n]);
    judged.contest(100_00n, 'BTC', tipHeight + 2);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 2n * HALF]);
  });

  test('is not declined while the rate of its arrival is not known, and decided when it is', () => {
    const judged = late(null, HALF);
    judged.mine(2);
    expect(judged.status).toBe('pending');
    judged.rate(100_000n);
    expect(judged.status).toBe('succeeded');
  });

  test('a payment that never confirms does not vouch for the price of one that does', () => {
    const judged = late(60_000n, HALF);
    const [onTime, cheap] = judged.chain().txs;
    judged.pay({ amount: HALF });
    judged.mineOnly(onTime!, cheap!);
    expect([judged.status, judged.available()]).toEqual(['pending', 0n]);
  });

  test('what is on time suffices: a late one is an extra and lies in suspense', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.afterGrace();
    judged.pay({ amount: HALF });
    judged.mine();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', judged.amountDue, HALF]);
  });

  test('the exact rest at the unchanged rate completes the price, to the unit', () => {
    const judged = judgedTransaction({ toleranceBps: 0 });
    judged.pay({ amount: 33_333n });
    judged.afterGrace();
    judged.pay({ amount: 16_667n });
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', 50_000n]);
  });

  test('what is on time and never confirms does not vouch for the price of a late one', () => {
    const judged = judgedTransaction();
    const first = judged.pay({ amount: 30_000n });
    judged.afterGrace();
    judged.rate(60_000n);
    const late = judged.pay({ amount: 50_000n });
    judged.mineOnly(late);
    expect([judged.status, judged.available()]).toEqual(['pending', 0n]);
    judged.doubleSpend(first);
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['declined', 0n, 50_000n]);
  });

  test('after rule 6 has applied it does not count any more', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.mine();
    judged.afterGrace();
    judged.pay({ amount: HALF });
    judged.mine();
    expect([judged.path(), judged.available()]).toEqual([['started', 'pending', 'declined', 'review'], 0n]);
  });
});

describe('confirmed late (rule 24)', () => {
  test.each([
    ['W + 24 h', W + DAY, 60_000n, 'succeeded'],
    ['a second later, worth less', W + DAY + SECOND, 98_900n, 'review'],
    ['a second later, worth it less the tolerance', W + DAY + SECOND, 99_000n, 'succeeded'],
    ['a second later, worth more', W + DAY + SECOND, 140_000n, 'succeeded'],
  ] as const)('in a block dated %s', (_when, atMs, rate, status) => {
    const judged = judgedTransaction();
    judged.pay();
    judged.until(atMs);
    judged.rate(rate);
    judged.mine();
    expect(judged.status).toBe(status);
    if (status === 'review') {
      expect([judged.rules(), judged.suspense(), judged.available()]).toEqual([[2, 24], judged.amountDue, 0n]);
      judged.rate(200_000n);
      judged.wait(DAY);
      expect(judged.status, 'rule 11 takes the value of then').toBe('review');
    }
  });

  test('what comes later does not make the policy accept it: only the merchant can', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.until(W + DAY + SECOND);
    judged.rate(50_000n);
    judged.mine();
    expect(judged.rules()).toEqual([2, 24]);
    judged.pay({ amount: 100_000n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
    judged.accept();
    expect([judged.status, judged.available()]).toEqual(['succeeded', 150_000n]);
  });

  test('the block that brings R is asked, not the one that holds the payment', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay();
    judged.until(W + DAY);
    judged.mine();
    judged.until(W + 25 * HOUR);
    judged.rate(60_000n);
    judged.mine();
    expect(judged.rules()).toEqual([2, 24]);
  });

  test.each([['as it comes'], ['after an outage']] as const)(
    'what has R only by a later block does not make up for the price of then: read %s',
    (how) => {
      const judged = judgedTransaction();
      const first = judged.pay();
      judged.pay();
      judged.until(W + DAY + SECOND);
      judged.rate(60_000n);
      if (how === 'after an outage') judged.node('down');
      judged.mineOnly(first);
      judged.wait(HOUR);
      judged.mine();
      judged.node('up');
      expect(judged.rules()).toEqual([2, 24]);
    },
  );

  test.each([['as it comes'], ['after an outage']] as const)(
    'enough payments that were not worth the missing dollars complete nothing, and what does so later is valued too: read %s',
    (how) => {
      const judged = judgedTransaction();
      const onTime = judged.pay({ amount: HALF });
      judged.afterGrace();
      judged.rate(60_000n);
      const late = judged.pay({ amount: HALF });
      judged.pay({ amount: 60_000n });
      judged.until(W + DAY + SECOND);
      if (how === 'after an outage') judged.node('down');
      judged.mineOnly(onTime, late);
      judged.wait(HOUR);
      judged.mine();
      judged.node('up');
      expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', 50_000n, 60_000n]);
    },
  );

  test.each([['as it comes'], ['after an outage']] as const)(
    'late ones that need more depth than the price together do not hide the block that completed it: read %s',
    (how) => {
      const judged = judgedTransaction({ usd: 99_00n });
      const onTime = judged.pay({ amount: 1_000n });
      judged.afterGrace();
      judged.rate(103_000n);
      const most = judged.pay({ amount: 84_000n });
      const rest = judged.pay({ amount: 14_000n });
      const later = judged.pay({ amount: 300_000n });
      judged.until(W + DAY + SECOND);
      judged.rate(60_000n);
      if (how === 'after an outage') judged.node('down');
      judged.mineOnly(onTime, most);
      judged.mineOnly(rest);
      judged.mineOnly(later);
      judged.mine(5);
      judged.node('up');
      expect(judged.rules()).toEqual([2, 24]);
    },
  );

  test('found later than it was dated, the date counts', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.node('down');
    judged.until(W + HOUR);
    judged.mine();
    judged.until(W + 3 * DAY);
    judged.rate(60_000n);
    judged.node('up');
    expect(judged.status).toBe('succeeded');
  });

  test.each([
    ['worth it then, not any more', 100_000n, 60_000n, 'succeeded'],
    ['not worth it then, worth it again', 60_000n, 100_000n, 'review'],
  ] as const)('a late block that is read later: %s', (_when, atBlock, atReading, status) => {
    const judged = judgedTransaction();
    judged.pay();
    judged.until(W + HOUR);
    judged.node('down');
    judged.until(W + 25 * HOUR);
    judged.rate(atBlock);
    judged.mine();
    judged.until(W + 30 * HOUR);
    judged.rate(atReading);
    judged.node('up');
    expect(judged.status).toBe(status);
  });

  test('nothing is decided while the rate of then is not known', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.until(W + 2 * DAY);
    judged.rate(null);
    judged.mine();
    expect(judged.status).toBe('pending');
    judged.rate(60_000n);
    expect(judged.status).toBe('review');
  });
});
