// What happens to a credit: the service's fee, the receivable is repaid first; and the figures that are shown meanwhile.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, MINUTE, W } from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('the service’s own fee', () => {
  test.each([
    [0, 50_000n, 0n],
    [100, 50_000n, 500n],
    [33, 49_999n, 164n],
  ] as const)('of %i basis points is taken from the credit, rounded down', (feeBps, amount, fee) => {
    const world = judgedTransaction({ feeBps });
    world.pay({ amount });
    world.mine();
    expect([world.available(), world.fees()]).toEqual([amount - fee, fee]);
  });

  test('is taken of what is accepted too, and not of what lies in suspense', () => {
    const world = judgedTransaction({ feeBps: 100 });
    world.pay({ amount: 150_000n });
    world.mine(2);
    expect([world.available(), world.fees(), world.suspense()]).toEqual([49_500n, 500n, 100_000n]);
    world.acceptExcess();
    expect([world.available(), world.fees(), world.suspense()]).toEqual([148_500n, 1_500n, 0n]);
  });
});

test('whatever enters available repays an open receivable first', () => {
  const world = judgedTransaction({ latePolicy: 'review' });
  world.pay();
  world.mine();
  world.spend(world.amountDue);
  world.reorg(1, 'dead');
  expect([world.available(), world.receivable()]).toEqual([0n, world.amountDue]);
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
  test('crypto_received is the sum of what is there in the right payment, late and extra ones too, and can fall', () => {
    const world = judgedTransaction();
    const tx = world.pay({ amount: HALF });
    world.pay({ currency: 'LTC', amount: 7n });
    world.until(W + 2 * HOUR);
    world.pay({ amount: 10_000n });
    expect(world.verdict.receivedMinor).toBe(35_000n);
    world.doubleSpend(tx);
    expect(world.verdict.receivedMinor).toBe(10_000n);
  });

  test('confirmations are those of the youngest payment that counts; null while one is unconfirmed', () => {
    const world = judgedTransaction({ usd: 150_00n });
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

  test('another currency never counts, also when it was accepted', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.pay({ currency: 'LTC', amount: 50_000n });
    world.mine(2, 'LTC');
    world.acceptExcess();
    expect([world.available('LTC'), world.verdict.youngest]).toEqual([50_000n, { height: 1001, currency: 'BTC' }]);
    const only = judgedTransaction();
    only.pay({ currency: 'LTC', amount: 50_000n });
    only.mine(2, 'LTC');
    expect(only.verdict.youngest?.currency, 'in review it is shown').toBe('LTC');
    only.accept();
    expect([only.status, only.verdict.youngest]).toEqual(['succeeded', null]);
  });

  test('in review they are those of all that are there', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.until(W + HOUR);
    world.pay();
    world.mine();
    expect(world.verdict.youngest?.height).toBe(1001);
    world.pay({ amount: 1_000n });
    expect(world.verdict.youngest).toBeNull();
    world.mine();
    expect(world.verdict.youngest?.height).toBe(1002);
  });

  test('a payment counts when it is on time, when rule 23 lets it, and when it is credited', () => {
    const world = judgedTransaction({ usd: 150_00n });
    const counted = () => world.payments.map((payment) => payment.counted);
    world.pay({ amount: 75_000n });
    world.until(W + 2 * MINUTE);
    world.pay({ amount: 10_000n });
    expect(counted(), 'too little to complete the price').toEqual([true, false]);
    world.pay({ amount: 65_000n });
    expect(counted()).toEqual([true, true, true]);
    world.pay({ amount: 5_000n, currency: 'LTC' });
    expect(counted(), 'another currency does not').toEqual([true, true, true, false]);
    world.mine(2);
    world.pay({ amount: 1_000n });
    expect([world.status, counted()]).toEqual(['succeeded', [true, true, true, false, false]]);
  });

  test('a coinbase output does not count before it is mature', () => {
    const world = judgedTransaction();
    world.pay({ coinbase: true, mined: true });
    world.mine(98);
    expect([world.status, world.verdict.youngest?.height, world.payments[0]?.counted]).toEqual(['pending', undefined, false]);
    world.mine();
    expect([world.status, world.verdict.youngest?.height, world.payments[0]?.counted]).toEqual(['succeeded', 1001, true]);
  });

  test('a credited payment that has left the chain has no confirmations, whatever the others have', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay({ amount: 75_000n });
    world.mine();
    world.pay({ amount: 75_000n });
    world.mine(2);
    expect([world.status, world.verdict.youngest?.height]).toEqual(['succeeded', 1002]);
    world.reorg(2, 'out');
    expect([world.status, world.verdict.youngest, world.payments.map((payment) => payment.counted)]).toEqual([
      'succeeded',
      null,
      [true, false],
    ]);
  });

  test('confirmed_at is set by rules 4, 11 and 12', () => {
    const bought = judgedTransaction();
    bought.pay();
    bought.wait(MINUTE);
    bought.mine();
    expect(bought.transaction.confirmedAtMs).toBe(bought.now);
    const accepted = judgedTransaction({ latePolicy: 'review' });
    accepted.until(W + HOUR);
    accepted.pay();
    accepted.mine();
    expect(accepted.transaction.confirmedAtMs).toBeNull();
    accepted.wait(HOUR);
    accepted.accept();
    expect(accepted.transaction.confirmedAtMs).toBe(accepted.now);
  });
});
