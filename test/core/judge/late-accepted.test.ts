// Late payments that are accepted, by the merchant's policy (rule 11) or by the merchant, and how deep they must lie for that.
import { describe, expect, test } from 'vitest';
import {
  DAY,
  HOUR,
  type JudgedTransaction,
  type JudgedTransactionOptions,
  judgedTransaction,
  W,
} from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('late, accepted by policy (rule 11)', () => {
  test.each([
    ['worth it', { rate: 100_000n, latePolicy: 'accept' }, 'succeeded'],
    ['worth it less the tolerance', { rate: 99_000n, latePolicy: 'accept' }, 'succeeded'],
    ['worth a cent less', { rate: 98_980n, latePolicy: 'accept' }, 'review'],
    ['worth it, but the merchant wants to look', { rate: 100_000n, latePolicy: 'review' }, 'review'],
  ] as const)('%s', (_what, { rate, latePolicy }, status) => {
    const judged = judgedTransaction({ latePolicy });
    judged.until(W + HOUR);
    judged.rate(rate);
    judged.pay();
    judged.mine();
    expect(judged.status).toBe(status);
    expect(judged.available()).toBe(status === 'succeeded' ? judged.amountDue : 0n);
    expect(judged.transaction.confirmedAtMs === null).toBe(status !== 'succeeded');
  });

  test('the whole price in several outputs is worth the price, to the unit', () => {
    const judged = judgedTransaction({ toleranceBps: 0 });
    judged.until(W + HOUR);
    judged.pay({ split: [16_667n, 16_667n, 16_666n] });
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', 50_000n]);
  });

  test.each([10_01n, 50n, 99n, 33_33n])(
    'exactly amount due − tolerance of %s cents at the unchanged price is worth usd − tol',
    (usd) => {
      const judged = judgedTransaction({ usd });
      judged.until(W + HOUR);
      judged.pay({ amount: judged.amountDue - judged.amountDue / 100n });
      judged.mine();
      expect(judged.status).toBe('succeeded');
    },
  );

  test('the real payments are credited, fewer or more than were asked for', () => {
    for (const [rate, amount] of [
      [200_000n, HALF],
      [50_000n, 100_000n],
    ] as const) {
      const judged = judgedTransaction();
      judged.until(W + HOUR);
      judged.rate(rate);
      judged.pay({ amount });
      judged.mine(2);
      expect([judged.status, judged.available()]).toEqual(['succeeded', amount]);
    }
  });

  test('what comes two days late is worth what it was when it came, not when its block did', () => {
    const judged = judgedTransaction();
    judged.until(W + 2 * DAY);
    judged.pay();
    judged.wait(HOUR);
    judged.rate(50_000n);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });

  test('payments arrive until their sum is worth it; another currency in suspense goes with them', () => {
    const judged = judgedTransaction();
    judged.until(W + HOUR);
    judged.pay({ currency: 'LTC', amount: 700n });
    judged.mine(12, 'LTC');
    judged.pay({ amount: HALF });
    judged.mine();
    expect(judged.status).toBe('review');
    judged.pay({ amount: HALF });
    judged.mine();
    expect([judged.rules(), judged.available(), judged.available('LTC')]).toEqual([[7, 18, 11, 5], judged.amountDue, 700n]);
  });

  test('it waits for the R of the transaction, even for small payments', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.until(W + HOUR);
    judged.pay({ split: [75_000n, 75_000n] });
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['review', judged.amountDue]);
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });

  test('a payment in suspense that has just left the chain holds it up', () => {
    const judged = judgedTransaction();
    judged.until(W + HOUR);
    const one = judged.pay({ amount: HALF });
    judged.mine();
    judged.reorg(1, 'out');
    judged.pay();
    judged.mine();
    expect(judged.status).toBe('review');
    judged.resend(one);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue + HALF]);
  });

  test.each(['cancelled', 'declined'] as const)('never after %s', (word) => {
    const judged = judgedTransaction();
    if (word === 'cancelled') judged.cancel();
    else {
      judged.pay({ amount: 1_000n });
      judged.mine();
      judged.afterGrace();
    }
    expect(judged.status).toBe(word);
    judged.until(W + HOUR);
    judged.pay({ amount: 10n * judged.amountDue });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
  });
});

describe('how deep late payments must lie', () => {
  const lateTransaction = (usdPerWhole: bigint, options: JudgedTransactionOptions = {}) => {
    const judged = judgedTransaction(options);
    judged.afterGrace();
    judged.rate(usdPerWhole);
    return judged;
  };
  /** The confirmations at which each of these first holds. */
  const depths = (judged: JudgedTransaction, ...seen: (() => boolean)[]): (number | null)[] => {
    const found: (number | null)[] = seen.map(() => null);
    for (let depth = 1; depth <= 7; depth++) {
      judged.mine();
      seen.forEach((holds, n) => {
        if (found[n] === null && holds()) found[n] = depth;
      });
    }
    return found;
  };

  test('without a price when it arrived it may be worth anything: the deepest R, until the first price says less', () => {
    const judged = judgedTransaction();
    judged.afterGrace();
    judged.rate(null);
    judged.pay();
    judged.mine(5);
    expect(judged.suspense()).toBe(0n);
    judged.rate(20_000_000n);
    expect([judged.status, judged.suspense() + judged.available()]).toEqual(['review', 0n]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
    const cheap = judgedTransaction();
    cheap.afterGrace();
    cheap.rate(null);
    cheap.pay();
    cheap.mine();
    cheap.rate(100_000n);
    expect(cheap.status).toBe('succeeded');
  });

  test.each([
    ['worth 99.99 USD on arrival', 199_980n, 1],
    ['worth 100 USD on arrival', 200_000n, 2],
    ['worth 1,000 USD on arrival', 2_000_000n, 3],
    ['worth 10,000 USD on arrival', 20_000_000n, 6],
  ] as const)('50 USD were asked for, %s: R of that', (_what, rate, depth) => {
    const judged = lateTransaction(rate);
    judged.pay();
    expect(
      depths(
        judged,
        () => judged.suspense() + judged.available() > 0n,
        () => judged.status === 'succeeded',
      ),
    ).toEqual([depth, depth]);
  });

  test('worth less on arrival than by the quote: R of the quote', () => {
    const judged = lateTransaction(60_000n, { usd: 100_00n, latePolicy: 'review' });
    judged.pay();
    expect(depths(judged, () => judged.suspense() > 0n)).toEqual([2]);
  });

  test('what is on time has the R of the quote, whatever the price is by then', () => {
    const judged = judgedTransaction();
    judged.rate(2_000_000n);
    judged.pay();
    expect(depths(judged, () => judged.status === 'succeeded')).toEqual([1]);
  });

  test.each(['outputs', 'transactions'])('20,000 USD in ten %s are accepted at the R of 20,000 USD', (how) => {
    const judged = lateTransaction(100_000n);
    const part = 2_000_000n;
    if (how === 'outputs') judged.pay({ split: Array.from({ length: 10 }, () => part) });
    else for (let n = 0; n < 10; n++) judged.pay({ amount: part });
    const held = () => judged.suspense() === 10n * part;
    // each is worth 2,000 USD, so it is booked; together they wait
    expect(depths(judged, held, () => judged.status === 'succeeded')).toEqual([3, 6]);
    expect(judged.available()).toBe(10n * part);
  });

  test('the merchant accepts at the R of all that is accepted, an excess at that of all of it', () => {
    const review = lateTransaction(100_000n, { latePolicy: 'review' });
    for (let n = 0; n < 5; n++) review.pay({ amount: 250_000n });
    const taken = (accept: () => void) => () => {
      try {
        accept();
        return true;
      } catch {
        return false;
      }
    };
    expect(depths(review, taken(review.accept))).toEqual([3]);

    const paid = judgedTransaction();
    paid.pay();
    paid.mine();
    for (let n = 0; n < 5; n++) paid.pay({ amount: 250_000n });
    expect(depths(paid, () => paid.suspense() > 0n, taken(paid.acceptExcess))).toEqual([2, 3]);
  });

  test('a stranger’s unconfirmed payment holds up no late payment', () => {
    const judged = lateTransaction(100_000n);
    const paid = judged.pay();
    const dust = judged.pay({ amount: 600n });
    judged.mineOnly(paid);
    expect([judged.status, judged.available(), judged.announced()]).toEqual([
      'succeeded',
      judged.amountDue,
      ['transaction.extra_payment'],
    ]);
    judged.mineOnly(dust);
    expect([judged.status, judged.suspense()]).toEqual(['succeeded', 600n]);
  });

  test('neither does a stranger’s payment in every block: a little one needs its own R only', () => {
    const judged = lateTransaction(100_000n, { usd: 2_000_00n });
    judged.pay();
    for (const status of ['review', 'review', 'succeeded']) {
      judged.pay({ amount: 600n });
      judged.mine();
      expect(judged.status).toBe(status);
    }
    expect([judged.available(), judged.suspense()]).toEqual([judged.amountDue + 3n * 600n, 0n]);
  });

  test('of what is worth much together, the part without its R is waited for', () => {
    const judged = lateTransaction(100_000n, { usd: 2_000_00n });
    judged.pay();
    judged.mine();
    // 900 USD more, in suspense at the required depth 2: credited together when both have the depth for 2,900 USD
    judged.pay({ amount: 900_000n });
    judged.mine(2);
    expect([judged.status, judged.suspense()]).toEqual(['succeeded', 0n]);
    expect(judged.available()).toBe(judged.amountDue + 900_000n);
  });

  test('what a reorganisation took back is not accepted out of suspense', () => {
    const judged = lateTransaction(100_000n, { usd: 2_000_00n });
    judged.pay({ amount: 1_000_000n });
    judged.mine(3);
    judged.pay({ amount: 1_000_000n });
    judged.mine(2);
    expect([judged.status, judged.suspense()]).toEqual(['review', 1_000_000n]);
    judged.reorg(5, 'mempool');
    expect([judged.status, judged.suspense()]).toEqual(['review', 1_000_000n]);
    judged.mine(2);
    expect(judged.status).toBe('review');
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });
});
