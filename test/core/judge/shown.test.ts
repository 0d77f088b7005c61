// What happens to a credit: the service's fee, the receivable is repaid first; and the figures that are shown meanwhile.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, MINUTE, W } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('the service’s own fee', () => {
  test.each([
    [0, 50_000n, 0n],
    [100, 50_000n, 500n],
    [33, 49_999n, 164n],
  ] as const)('of %i basis points is taken from the credit, rounded down', (feeBps, amount, fee) => {
    const judged = judgedTransaction({ feeBps });
    judged.pay({ amount });
    judged.mine();
    expect([judged.available(), judged.fees()]).toEqual([amount - fee, fee]);
  });

  test('is taken of what is accepted too, and not of what lies in suspense', () => {
    const judged = judgedTransaction({ feeBps: 100 });
    judged.pay({ amount: 150_000n });
    judged.mine(2);
    expect([judged.available(), judged.fees(), judged.suspense()]).toEqual([49_500n, 500n, 100_000n]);
    judged.acceptExcess();
    expect([judged.available(), judged.fees(), judged.suspense()]).toEqual([148_500n, 1_500n, 0n]);
  });
});

test('whatever enters available repays an open receivable first', () => {
  const judged = judgedTransaction({ latePolicy: 'review' });
  judged.pay();
  judged.mine();
  judged.spend(judged.amountDue);
  judged.reorg(1, 'dead');
  expect([judged.available(), judged.receivable()]).toEqual([0n, judged.amountDue]);
  judged.pay({ amount: 30_000n });
  judged.mine();
  judged.accept();
  expect([judged.status, judged.available(), judged.receivable()]).toEqual(['succeeded', 0n, 20_000n]);
  judged.pay({ amount: 30_000n });
  judged.mine();
  judged.acceptExcess();
  expect([judged.available(), judged.receivable()]).toEqual([10_000n, 0n]);
});

describe('what is shown', () => {
  test('crypto_received is the sum of what is there in the right payment, late and extra ones too, and can fall', () => {
    const judged = judgedTransaction();
    const tx = judged.pay({ amount: HALF });
    judged.pay({ currency: 'LTC', amount: 7n });
    judged.until(W + 2 * HOUR);
    judged.pay({ amount: 10_000n });
    expect(judged.verdict.receivedMinor).toBe(35_000n);
    judged.doubleSpend(tx);
    expect(judged.verdict.receivedMinor).toBe(10_000n);
  });

  test('in review and declined the confirmations are those of all payments, of another currency too', () => {
    const judged = judgedTransaction();
    judged.pay({ currency: 'LTC', amount: 900n });
    judged.mine(3, 'LTC');
    const shown = () => [judged.status, judged.verdict.youngest?.currency];
    expect(shown()).toEqual(['review', 'LTC']);
    judged.decline();
    expect(shown()).toEqual(['declined', 'LTC']);
  });

  test('confirmations are those of the youngest payment that counts; null while one is unconfirmed', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    const one = judged.pay({ amount: 75_000n });
    judged.mineOnly(one);
    expect(judged.verdict.youngest?.height).toBe(1001);
    judged.pay({ amount: 75_000n });
    expect(judged.verdict.youngest).toBeNull();
    judged.mine();
    expect(judged.verdict.youngest?.height).toBe(1002);
    judged.mine();
    expect(judged.status).toBe('succeeded');
    judged.pay({ amount: 1_000n });
    expect(judged.verdict.youngest?.height, 'an extra one does not count').toBe(1002);
  });

  test('another currency never counts, also when it was accepted', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.pay({ currency: 'LTC', amount: 50_000n });
    judged.mine(2, 'LTC');
    judged.acceptExcess();
    expect([judged.available('LTC'), judged.verdict.youngest]).toEqual([50_000n, { height: 1001, currency: 'BTC' }]);
    const only = judgedTransaction();
    only.pay({ currency: 'LTC', amount: 50_000n });
    only.mine(2, 'LTC');
    expect(only.verdict.youngest?.currency, 'in review it is shown').toBe('LTC');
    only.accept();
    expect([only.status, only.verdict.youngest]).toEqual(['succeeded', null]);
  });

  test('in review they are those of all that are there', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.until(W + HOUR);
    judged.pay();
    judged.mine();
    expect(judged.verdict.youngest?.height).toBe(1001);
    judged.pay({ amount: 1_000n });
    expect(judged.verdict.youngest).toBeNull();
    judged.mine();
    expect(judged.verdict.youngest?.height).toBe(1002);
  });

  test('a payment counts when it is on time, when rule 23 lets it, and when it is credited', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    const counted = () => judged.payments.map((payment) => payment.counted);
    judged.pay({ amount: 75_000n });
    judged.until(W + 2 * MINUTE);
    judged.pay({ amount: 10_000n });
    expect(counted(), 'too little to complete the price').toEqual([true, false]);
    judged.pay({ amount: 65_000n });
    expect(counted()).toEqual([true, true, true]);
    judged.pay({ amount: 5_000n, currency: 'LTC' });
    expect(counted(), 'another currency does not').toEqual([true, true, true, false]);
    judged.mine(2);
    judged.pay({ amount: 1_000n });
    expect([judged.status, counted()]).toEqual(['succeeded', [true, true, true, false, false]]);
  });

  test('a coinbase output does not count before it is mature', () => {
    const judged = judgedTransaction();
    judged.pay({ coinbase: true, mined: true });
    judged.mine(98);
    expect([judged.status, judged.verdict.youngest?.height, judged.payments[0]?.counted]).toEqual(['pending', undefined, false]);
    judged.mine();
    expect([judged.status, judged.verdict.youngest?.height, judged.payments[0]?.counted]).toEqual(['succeeded', 1001, true]);
  });

  test('a credited payment that has left the chain has no confirmations, whatever the others have', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay({ amount: 75_000n });
    judged.mine();
    judged.pay({ amount: 75_000n });
    judged.mine(2);
    expect([judged.status, judged.verdict.youngest?.height]).toEqual(['succeeded', 1002]);
    judged.reorg(2, 'out');
    expect([judged.status, judged.verdict.youngest, judged.payments.map((payment) => payment.counted)]).toEqual([
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
