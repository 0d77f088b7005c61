// What a block of Ethereum's chain pays by itself, its fees or a validator's withdrawal: nobody's payment, whatever the order needs.
import { describe, expect, test } from 'vitest';
import { reaches, requiredDepth } from '../../../src/core/confirmations.ts';
import { live } from '../../support/history.ts';
import { HOUR, judgedTransaction, W } from '../../support/judged-transaction.ts';
import { testHistories } from '../../support/seeded-histories.ts';

const PRICE = 50_000n;

describe('what a block pays to the address of an order', () => {
  test('pays no price, changes no status, and lies in suspense while the order waits', () => {
    const judged = judgedTransaction({ currency: 'ETH' });
    judged.pay({ amount: PRICE, coinbase: true, mined: true });
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['started', 0n, PRICE]);
    expect(judged.verdict?.receivedMinor).toBe(0n);
    expect(judged.announced()).toEqual(['transaction.other_asset']);
    judged.pay({ amount: PRICE });
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', PRICE, PRICE]);
    expect(judged.payments.map(({ counted }) => counted)).toEqual([false, true]);
  });

  test('completes no payment that is too small', () => {
    const judged = judgedTransaction({ currency: 'ETH' });
    judged.pay({ amount: PRICE - 1_000n });
    judged.pay({ amount: 1_000n, coinbase: true, mined: true });
    judged.mine(12);
    expect(judged.status).toBe('pending');
    judged.until(W + HOUR);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['declined', 0n, PRICE]);
  });

  test('goes back to no customer, neither with his payment nor as an excess', () => {
    const judged = judgedTransaction({ currency: 'ETH' });
    judged.pay({ amount: 2_000n, coinbase: true, mined: true });
    judged.pay({ amount: PRICE + 20_000n });
    judged.mine(6);
    judged.openRefund('excess');
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', PRICE, 2_000n]);
    judged.openRefund();
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['reimbursed', 0n, 2_000n]);
    judged.acceptExcess();
    expect([judged.available(), judged.suspense()]).toEqual([2_000n, 0n]);
  });

  test('is taken back when its block is replaced', () => {
    const judged = judgedTransaction({ currency: 'ETH' });
    judged.pay({ amount: PRICE, coinbase: true, mined: true });
    judged.mine(6);
    expect(judged.suspense()).toBe(PRICE);
    judged.reorg(7);
    judged.wait(HOUR);
    expect([judged.status, judged.suspense()]).toEqual(['timedout', 0n]);
  });

  test('has to mature no longer than the rest of its block, and no shorter', () => {
    const dear = requiredDepth('ETH', 10_000_00n);
    const deep = { confirmations: 1_000, coinbase: true, lock: null } as const;
    expect(reaches('ETH', deep, dear)).toBe(false);
    expect(reaches('ETH', { ...deep, lock: 'chainlock' }, dear)).toBe(true);
  });
});

describe('random histories of an order in ether', () => {
  testHistories((seed) => live(seed, undefined, { currency: 'ETH' }), { onceFailed: [], count: 150 });
});
