// Is it enough: need, tolerance and R, what is credited and what goes to suspense, short payments, late ones at the old price, late
// confirmations, the service's fee (rules 4, 5, 6, 11, 21, 23, 24), and the figures that are shown meanwhile.
import { describe, expect, test } from 'vitest';
import { requiredConfirmations } from '../../src/core/confirmations.ts';
import { DAY, HOUR, MINUTE, newWorld, QUOTE, SECOND, W } from '../support/world.ts';

const HALF = 25_000n;

describe('need and tolerance', () => {
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
      const world = newWorld({ toleranceBps, usd });
      world.pay({ amount });
      world.mine(6);
      world.afterGrace();
      expect([world.status, world.verdict.receivedMinor]).toEqual([status, amount]);
      expect(world.available()).toBe(status === 'succeeded' ? amount : 0n);
      expect(world.suspense()).toBe(status === 'succeeded' ? 0n : amount);
    }
  });

  test.each([
    ['need + tol: all of it', 50_500n, 50_500n],
    ['one unit above: exactly need', 50_501n, 50_000n],
    ['ten times: exactly need', 500_000n, 50_000n],
  ] as const)('at %s is credited', (_what, amount, credited) => {
    const world = newWorld();
    world.pay({ amount });
    world.mine(3);
    expect([world.available(), world.suspense()]).toEqual([credited, amount - credited]);
  });

  test('of several payments the first ones are credited, and the rest of the last goes to suspense', () => {
    const world = newWorld();
    for (const amount of [30_000n, 15_000n, 30_000n]) world.pay({ amount });
    world.mine();
    expect(world.coins.map((coin) => [coin.inAvailable, coin.inSuspense])).toEqual([
      [30_000n, 0n],
      [15_000n, 0n],
      [5_000n, 25_000n],
    ]);
  });

  test('a second payment still below R when the first suffices is an extra one', () => {
    const world = newWorld();
    const first = world.pay();
    world.pay({ amount: HALF });
    world.mineOnly(first);
    expect([world.status, world.announced()]).toEqual(['succeeded', ['transaction.extra_payment']]);
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', world.need, HALF]);
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
    expect(requiredConfirmations(currency, usd).depth).toBe(depth);
    const world = newWorld({ currency, usd });
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
    const world = newWorld({ currency: 'DASH', usd });
    world.pay({ lock });
    expect(world.status).toBe(status);
    world.mine(requiredConfirmations('DASH', usd).depth);
    expect(world.status).toBe('succeeded');
  });

  test('a lock that comes later counts when it comes', () => {
    const world = newWorld({ currency: 'DASH' });
    const tx = world.pay();
    expect(world.status).toBe('pending');
    world.lock(tx, 'instantsend');
    expect(world.status).toBe('succeeded');
  });

  test.each([
    ['BTC', 100],
    ['DOGE', 240],
  ] as const)('a coinbase output of %s counts only when mature', (currency, maturity) => {
    const world = newWorld({ currency });
    world.pay({ coinbase: true });
    world.mine(maturity - 2);
    expect(world.status).toBe('pending');
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test('a coin goes to suspense at the R of its own value, not of the transaction', () => {
    const world = newWorld({ latePolicy: 'review' });
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
    const world = newWorld({ usd: 150_00n });
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
    const world = newWorld();
    world.pay({ amount: HALF });
    world.mine();
    const other = world.pay({ amount: HALF });
    world.doubleSpend(other);
    world.afterGrace();
    expect([world.status, world.suspense()]).toEqual(['declined', HALF]);
  });
});

describe('late, at the old price (rule 23)', () => {
  const late = (rate: bigint | null, amount: bigint, options: { toleranceBps?: number } = {}) => {
    const world = newWorld(options);
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
    ['too few coins, whatever they are worth', 200_000n, HALF - 501n, 'declined'],
    ['just enough coins', 104_000n, HALF - 500n, 'succeeded'],
    ['more coins at a lower price', 60_000n, 41_000n, 'succeeded'],
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
    const world = newWorld();
    world.pay();
    world.afterGrace();
    world.pay({ amount: HALF });
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', world.need, HALF]);
  });

  test('after rule 6 has applied it does not count any more', () => {
    const world = newWorld();
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
    const world = newWorld();
    world.pay();
    world.until(atMs);
    world.rate(rate);
    world.mine();
    expect(world.status).toBe(status);
    if (status === 'review') {
      expect([world.rules(), world.suspense(), world.available()]).toEqual([[2, 24], world.need, 0n]);
      world.rate(200_000n);
      world.wait(DAY);
      expect(world.status, 'rule 11 takes the value of then').toBe('review');
    }
  });

  test('the block that brings R is asked, not the one that holds the payment', () => {
    const world = newWorld({ usd: 150_00n });
    world.pay();
    world.until(W + DAY);
    world.mine();
    world.until(W + 25 * HOUR);
    world.rate(60_000n);
    world.mine();
    expect(world.rules()).toEqual([2, 24]);
  });

  test('found later than it was dated, the date counts', () => {
    const world = newWorld();
    world.pay();
    world.node('down');
    world.until(W + HOUR);
    world.mine();
    world.until(W + 3 * DAY);
    world.rate(60_000n);
    world.node('up');
    expect(world.status).toBe('succeeded');
  });

  test('nothing is decided while the rate of then is not known', () => {
    const world = newWorld();
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
    const world = newWorld({ latePolicy });
    world.until(W + HOUR);
    world.rate(rate);
    world.pay();
    world.mine();
    expect(world.status).toBe(status);
    expect(world.available()).toBe(status === 'succeeded' ? world.need : 0n);
    expect(world.transaction.confirmedAtMs === null).toBe(status !== 'succeeded');
  });

  test('the real coins are credited, fewer or more than were asked for', () => {
    for (const [rate, amount] of [
      [200_000n, HALF],
      [50_000n, 100_000n],
    ] as const) {
      const world = newWorld();
      world.until(W + HOUR);
      world.rate(rate);
      world.pay({ amount });
      world.mine(2);
      expect([world.status, world.available()]).toEqual(['succeeded', amount]);
    }
  });

  test('payments arrive until their sum is worth it; another coin in suspense goes with them', () => {
    const world = newWorld();
    world.until(W + HOUR);
    world.pay({ currency: 'LTC', amount: 700n });
    world.mine(12, 'LTC');
    world.pay({ amount: HALF });
    world.mine();
    expect(world.status).toBe('review');
    world.pay({ amount: HALF });
    world.mine();
    expect([world.rules(), world.available(), world.available('LTC')]).toEqual([[7, 18, 11, 5], world.need, 700n]);
  });

  test('it waits for the R of the transaction, even for small coins', () => {
    const world = newWorld({ usd: 150_00n });
    world.until(W + HOUR);
    world.pay({ split: [75_000n, 75_000n] });
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['review', world.need]);
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test('a coin in suspense that has just left the chain holds it up', () => {
    const world = newWorld();
    world.until(W + HOUR);
    const one = world.pay({ amount: HALF });
    world.mine();
    world.reorg(1, 'out');
    world.pay();
    world.mine();
    expect(world.status).toBe('review');
    world.resend(one);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.need + HALF]);
  });

  test.each(['cancelled', 'declined'] as const)('never after %s', (word) => {
    const world = newWorld();
    if (word === 'cancelled') world.cancel();
    else {
      world.pay({ amount: 1_000n });
      world.mine();
      world.afterGrace();
    }
    expect(world.status).toBe(word);
    world.until(W + HOUR);
    world.pay({ amount: 10n * world.need });
    world.mine(6);
    expect([world.status, world.available()]).toEqual(['review', 0n]);
  });
});

describe('the service’s own fee', () => {
  test.each([
    [0, 50_000n, 0n],
    [100, 50_000n, 500n],
    [33, 49_999n, 164n],
  ] as const)('of %i basis points is taken from the credit, rounded down', (feeBps, amount, fee) => {
    const world = newWorld({ feeBps });
    world.pay({ amount });
    world.mine();
    expect([world.available(), world.fees()]).toEqual([amount - fee, fee]);
  });

  test('is taken of what is accepted too, and not of what lies in suspense', () => {
    const world = newWorld({ feeBps: 100 });
    world.pay({ amount: 150_000n });
    world.mine(2);
    expect([world.available(), world.fees(), world.suspense()]).toEqual([49_500n, 500n, 100_000n]);
    world.acceptExcess();
    expect([world.available(), world.fees(), world.suspense()]).toEqual([148_500n, 1_500n, 0n]);
  });
});

test('whatever enters available repays an open receivable first', () => {
  const world = newWorld({ latePolicy: 'review' });
  world.pay();
  world.mine();
  world.spend(world.need);
  world.reorg(1, 'dead');
  expect([world.available(), world.receivable()]).toEqual([0n, world.need]);
  world.pay({ amount: 30_000n });
  world.mine();
  world.accept();
  expect([world.status, world.available(), world.receivable()]).toEqual(['succeeded', 0n, 20_000n]);
  world.pay({ amount: 30_000n });
  world.mine();
  world.acceptExcess();
  expect([world.available(), world.receivable()]).toEqual([10_000n, 0n]);
});

describe('what is shown', () => {
  test('crypto_received is the sum of what is there in the right coin, late and extra ones too, and can fall', () => {
    const world = newWorld();
    const tx = world.pay({ amount: HALF });
    world.pay({ currency: 'LTC', amount: 7n });
    world.until(W + 2 * HOUR);
    world.pay({ amount: 10_000n });
    expect(world.verdict.receivedMinor).toBe(35_000n);
    world.doubleSpend(tx);
    expect(world.verdict.receivedMinor).toBe(10_000n);
  });

  test('confirmations are those of the youngest payment that counts; null while one is unconfirmed', () => {
    const world = newWorld({ usd: 150_00n });
    const one = world.pay({ amount: 75_000n });
    world.mineOnly(one);
    expect(world.verdict.youngest?.height).toBe(1001);
    world.pay({ amount: 75_000n });
    expect(world.verdict.youngest).toBeNull();
    world.mine();
    expect(world.verdict.youngest?.height).toBe(1002);
    world.mine();
    expect(world.status).toBe('succeeded');
    world.pay({ amount: 1_000n });
    expect(world.verdict.youngest?.height, 'an extra one does not count').toBe(1002);
  });

  test('in review they are those of all that are there', () => {
    const world = newWorld({ latePolicy: 'review' });
    world.until(W + HOUR);
    world.pay();
    world.mine();
    expect(world.verdict.youngest?.height).toBe(1001);
    world.pay({ amount: 1_000n });
    expect(world.verdict.youngest).toBeNull();
    world.mine();
    expect(world.verdict.youngest?.height).toBe(1002);
  });

  test('confirmed_at is set by rules 4, 11 and 12', () => {
    const bought = newWorld();
    bought.pay();
    bought.wait(MINUTE);
    bought.mine();
    expect(bought.transaction.confirmedAtMs).toBe(bought.now);
    const accepted = newWorld({ latePolicy: 'review' });
    accepted.until(W + HOUR);
    accepted.pay();
    accepted.mine();
    expect(accepted.transaction.confirmedAtMs).toBeNull();
    accepted.wait(HOUR);
    accepted.accept();
    expect(accepted.transaction.confirmedAtMs).toBe(accepted.now);
  });
});

test('the quote of the small world makes a cent ten satoshi', () => {
  expect(newWorld().transaction.rate).toBe(QUOTE);
  expect(newWorld().need).toBe(50_000n);
});
