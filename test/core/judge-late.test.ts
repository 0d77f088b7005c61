// Late payments and their value: a late payment beside one on time (rule 23), one that confirms late (rule 24), and late ones that the
// merchant's policy accepts (rule 11).
import { describe, expect, test } from 'vitest';
import {
  DAY,
  HOUR,
  type JudgedTransaction,
  type JudgedTransactionOptions,
  judgedTransaction,
  SECOND,
  W,
} from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('late, at the old price (rule 23)', () => {
  const late = (rate: bigint | null, amount: bigint, options: { toleranceBps?: number } = {}) => {
    const world = judgedTransaction(options);
    world.pay({ amount: HALF });
    world.afterGrace();
    world.rate(rate);
    world.pay({ amount });
    return world;
  };

  test.each([
    ['worth the missing dollars', 100_000n, HALF, 'succeeded'],
    ['worth them less the tolerance (24.50)', 98_000n, HALF, 'succeeded'],
    ['worth a cent less than that', 97_960n, HALF, 'declined'],
    ['too few payments, whatever they are worth', 200_000n, HALF - 501n, 'declined'],
    ['just enough payments', 104_000n, HALF - 500n, 'succeeded'],
    ['more payments at a lower price', 60_000n, 41_000n, 'succeeded'],
  ] as const)('a payment %s', (_what, rate, amount, status) => {
    const world = late(rate, amount);
    expect(world.status).toBe('pending');
    world.mine(2);
    expect(world.status).toBe(status);
    if (status === 'declined') expect(world.suspense()).toBe(HALF + amount);
  });

  test('is not declined while the rate of its arrival is not known, and decided when it is', () => {
    const world = late(null, HALF);
    world.mine(2);
    expect(world.status).toBe('pending');
    world.rate(100_000n);
    expect(world.status).toBe('succeeded');
  });

  test('a payment that never confirms does not vouch for the price of one that does', () => {
    const world = late(60_000n, HALF);
    const [onTime, cheap] = world.chain().txs;
    world.pay({ amount: HALF });
    world.mineOnly(onTime!, cheap!);
    expect([world.status, world.available()]).toEqual(['pending', 0n]);
  });

  test('what is on time suffices: a late one is an extra and lies in suspense', () => {
    const world = judgedTransaction();
    world.pay();
    world.afterGrace();
    world.pay({ amount: HALF });
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', world.amountDue, HALF]);
  });

  test('the exact rest at the unchanged rate completes the price, to the unit', () => {
    const world = judgedTransaction({ toleranceBps: 0 });
    world.pay({ amount: 33_333n });
    world.afterGrace();
    world.pay({ amount: 16_667n });
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', 50_000n]);
  });

  test('what is on time and never confirms does not vouch for the price of a late one', () => {
    const world = judgedTransaction();
    const first = world.pay({ amount: 30_000n });
    world.afterGrace();
    world.rate(60_000n);
    const late = world.pay({ amount: 50_000n });
    world.mineOnly(late);
    expect([world.status, world.available()]).toEqual(['pending', 0n]);
    world.doubleSpend(first);
    world.mine(6);
    expect([world.status, world.available(), world.suspense()]).toEqual(['declined', 0n, 50_000n]);
  });

  test('after rule 6 has applied it does not count any more', () => {
    const world = judgedTransaction();
    world.pay({ amount: HALF });
    world.mine();
    world.afterGrace();
    world.pay({ amount: HALF });
    world.mine();
    expect([world.path(), world.available()]).toEqual([['started', 'pending', 'declined', 'review'], 0n]);
  });
});

describe('confirmed late (rule 24)', () => {
  test.each([
    ['W + 24 h', W + DAY, 60_000n, 'succeeded'],
    ['a second later, worth less', W + DAY + SECOND, 98_900n, 'review'],
    ['a second later, worth it less the tolerance', W + DAY + SECOND, 99_000n, 'succeeded'],
    ['a second later, worth more', W + DAY + SECOND, 140_000n, 'succeeded'],
  ] as const)('in a block dated %s', (_when, atMs, rate, status) => {
    const world = judgedTransaction();
    world.pay();
    world.until(atMs);
    world.rate(rate);
    world.mine();
    expect(world.status).toBe(status);
    if (status === 'review') {
      expect([world.rules(), world.suspense(), world.available()]).toEqual([[2, 24], world.amountDue, 0n]);
      world.rate(200_000n);
      world.wait(DAY);
      expect(world.status, 'rule 11 takes the value of then').toBe('review');
    }
  });

  test('the block that brings R is asked, not the one that holds the payment', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay();
    world.until(W + DAY);
    world.mine();
    world.until(W + 25 * HOUR);
    world.rate(60_000n);
    world.mine();
    expect(world.rules()).toEqual([2, 24]);
  });

  test('found later than it was dated, the date counts', () => {
    const world = judgedTransaction();
    world.pay();
    world.node('down');
    world.until(W + HOUR);
    world.mine();
    world.until(W + 3 * DAY);
    world.rate(60_000n);
    world.node('up');
    expect(world.status).toBe('succeeded');
  });

  test.each([
    ['worth it then, not any more', 100_000n, 60_000n, 'succeeded'],
    ['not worth it then, worth it again', 60_000n, 100_000n, 'review'],
  ] as const)('a late block that is read later: %s', (_when, atBlock, atReading, status) => {
    const world = judgedTransaction();
    world.pay();
    world.until(W + HOUR);
    world.node('down');
    world.until(W + 25 * HOUR);
    world.rate(atBlock);
    world.mine();
    world.until(W + 30 * HOUR);
    world.rate(atReading);
    world.node('up');
    expect(world.status).toBe(status);
  });

  test('nothing is decided while the rate of then is not known', () => {
    const world = judgedTransaction();
    world.pay();
    world.until(W + 2 * DAY);
    world.rate(null);
    world.mine();
    expect(world.status).toBe('pending');
    world.rate(60_000n);
    expect(world.status).toBe('review');
  });
});

describe('late, accepted by policy (rule 11)', () => {
  test.each([
    ['worth it', { rate: 100_000n, latePolicy: 'accept' }, 'succeeded'],
    ['worth it less the tolerance', { rate: 99_000n, latePolicy: 'accept' }, 'succeeded'],
    ['worth a cent less', { rate: 98_980n, latePolicy: 'accept' }, 'review'],
    ['worth it, but the merchant wants to look', { rate: 100_000n, latePolicy: 'review' }, 'review'],
  ] as const)('%s', (_what, { rate, latePolicy }, status) => {
    const world = judgedTransaction({ latePolicy });
    world.until(W + HOUR);
    world.rate(rate);
    world.pay();
    world.mine();
    expect(world.status).toBe(status);
    expect(world.available()).toBe(status === 'succeeded' ? world.amountDue : 0n);
    expect(world.transaction.confirmedAtMs === null).toBe(status !== 'succeeded');
  });

  test('the whole price in several outputs is worth the price, to the unit', () => {
    const world = judgedTransaction({ toleranceBps: 0 });
    world.until(W + HOUR);
    world.pay({ split: [16_667n, 16_667n, 16_666n] });
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', 50_000n]);
  });

  test.each([10_01n, 50n, 99n, 33_33n])(
    'exactly amount due − tolerance of %s cents at the unchanged price is worth usd − tol',
    (usd) => {
      const world = judgedTransaction({ usd });
      world.until(W + HOUR);
      world.pay({ amount: world.amountDue - world.amountDue / 100n });
      world.mine();
      expect(world.status).toBe('succeeded');
    },
  );

  test('the real payments are credited, fewer or more than were asked for', () => {
    for (const [rate, amount] of [
      [200_000n, HALF],
      [50_000n, 100_000n],
    ] as const) {
      const world = judgedTransaction();
      world.until(W + HOUR);
      world.rate(rate);
      world.pay({ amount });
      world.mine(2);
      expect([world.status, world.available()]).toEqual(['succeeded', amount]);
    }
  });

  test('payments arrive until their sum is worth it; another currency in suspense goes with them', () => {
    const world = judgedTransaction();
    world.until(W + HOUR);
    world.pay({ currency: 'LTC', amount: 700n });
    world.mine(12, 'LTC');
    world.pay({ amount: HALF });
    world.mine();
    expect(world.status).toBe('review');
    world.pay({ amount: HALF });
    world.mine();
    expect([world.rules(), world.available(), world.available('LTC')]).toEqual([[7, 18, 11, 5], world.amountDue, 700n]);
  });

  test('it waits for the R of the transaction, even for small payments', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.until(W + HOUR);
    world.pay({ split: [75_000n, 75_000n] });
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['review', world.amountDue]);
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test('a payment in suspense that has just left the chain holds it up', () => {
    const world = judgedTransaction();
    world.until(W + HOUR);
    const one = world.pay({ amount: HALF });
    world.mine();
    world.reorg(1, 'out');
    world.pay();
    world.mine();
    expect(world.status).toBe('review');
    world.resend(one);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue + HALF]);
  });

  test.each(['cancelled', 'declined'] as const)('never after %s', (word) => {
    const world = judgedTransaction();
    if (word === 'cancelled') world.cancel();
    else {
      world.pay({ amount: 1_000n });
      world.mine();
      world.afterGrace();
    }
    expect(world.status).toBe(word);
    world.until(W + HOUR);
    world.pay({ amount: 10n * world.amountDue });
    world.mine(6);
    expect([world.status, world.available()]).toEqual(['review', 0n]);
  });
});

describe('how deep late payments must lie', () => {
  const lateWorld = (usdPerCoin: bigint, options: JudgedTransactionOptions = {}) => {
    const world = judgedTransaction(options);
    world.afterGrace();
    world.rate(usdPerCoin);
    return world;
  };
  /** The confirmations at which each of these first holds. */
  const depths = (world: JudgedTransaction, ...seen: (() => boolean)[]): (number | null)[] => {
    const found: (number | null)[] = seen.map(() => null);
    for (let depth = 1; depth <= 7; depth++) {
      world.mine();
      seen.forEach((holds, n) => {
        if (found[n] === null && holds()) found[n] = depth;
      });
    }
    return found;
  };

  test.each([
    ['worth 99.99 USD on arrival', 199_980n, 1],
    ['worth 100 USD on arrival', 200_000n, 2],
    ['worth 1,000 USD on arrival', 2_000_000n, 3],
    ['worth 10,000 USD on arrival', 20_000_000n, 6],
  ] as const)('50 USD were asked for, %s: R of that', (_what, rate, depth) => {
    const world = lateWorld(rate);
    world.pay();
    expect(
      depths(
        world,
        () => world.suspense() + world.available() > 0n,
        () => world.status === 'succeeded',
      ),
    ).toEqual([depth, depth]);
  });

  test('worth less on arrival than by the quote: R of the quote', () => {
    const world = lateWorld(60_000n, { usd: 100_00n, latePolicy: 'review' });
    world.pay();
    expect(depths(world, () => world.suspense() > 0n)).toEqual([2]);
  });

  test('what is on time has the R of the quote, whatever the price is by then', () => {
    const world = judgedTransaction();
    world.rate(2_000_000n);
    world.pay();
    expect(depths(world, () => world.status === 'succeeded')).toEqual([1]);
  });

  test.each(['outputs', 'transactions'])('20,000 USD in ten %s are accepted at the R of 20,000 USD', (how) => {
    const world = lateWorld(100_000n);
    const part = 2_000_000n;
    if (how === 'outputs') world.pay({ split: Array.from({ length: 10 }, () => part) });
    else for (let n = 0; n < 10; n++) world.pay({ amount: part });
    const held = () => world.suspense() === 10n * part;
    // each is worth 2,000 USD, so it is booked; together they wait
    expect(depths(world, held, () => world.status === 'succeeded')).toEqual([3, 6]);
    expect(world.available()).toBe(10n * part);
  });

  test('the merchant accepts at the R of all that is accepted, an excess at that of all of it', () => {
    const review = lateWorld(100_000n, { latePolicy: 'review' });
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

  test('what strangers send and nobody mines keeps a late payment from nothing', () => {
    const world = lateWorld(100_000n);
    const paid = world.pay();
    const dust = world.pay({ amount: 600n });
    world.mineOnly(paid);
    expect([world.status, world.available(), world.announced()]).toEqual([
      'succeeded',
      world.amountDue,
      ['transaction.extra_payment'],
    ]);
    world.mineOnly(dust);
    expect([world.status, world.suspense()]).toEqual(['succeeded', 600n]);
  });

  test('nor what they pay for in every block: a little one needs its own R only', () => {
    const world = lateWorld(100_000n, { usd: 2_000_00n });
    world.pay();
    for (const status of ['review', 'review', 'succeeded']) {
      world.pay({ amount: 600n });
      world.mine();
      expect(world.status).toBe(status);
    }
    expect([world.available(), world.suspense()]).toEqual([world.amountDue + 3n * 600n, 0n]);
  });

  test('of what is worth much together, the part without its R is waited for', () => {
    const world = lateWorld(100_000n, { usd: 2_000_00n });
    world.pay();
    world.mine();
    // 900 USD more, in suspense at the required depth 2: credited together when both have the depth for 2,900 USD
    world.pay({ amount: 900_000n });
    world.mine(2);
    expect([world.status, world.suspense()]).toEqual(['succeeded', 0n]);
    expect(world.available()).toBe(world.amountDue + 900_000n);
  });

  test('what a reorganisation took back is not accepted out of suspense', () => {
    const world = lateWorld(100_000n, { usd: 2_000_00n });
    world.pay({ amount: 1_000_000n });
    world.mine(3);
    world.pay({ amount: 1_000_000n });
    world.mine(2);
    expect([world.status, world.suspense()]).toEqual(['review', 1_000_000n]);
    world.reorg(5, 'mempool');
    expect([world.status, world.suspense()]).toEqual(['review', 1_000_000n]);
    world.mine(2);
    expect(world.status).toBe('review');
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
  });
});
