// Each protection of the model Credit that a feature built so far needs, by its name: the history that goes wrong without that protection,
// and its right result; those about where units are stand in credit-places. The invariants of the model are also checked after every step
// of every history.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, MINUTE, W } from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('one rule for each status and payment', () => {
  test('started_late: a late payment noticed while still started follows rule 9', () => {
    const world = judgedTransaction();
    world.node('down');
    world.until(W + 3 * HOUR);
    world.pay();
    expect(world.status).toBe('started');
    world.node('up');
    expect(world.path()).toEqual(['started', 'review']);
    expect(world.rules()).toEqual([9]);
  });

  test('cancelled_is_late: after a cancel every payment follows rule 9, on time or not', () => {
    const world = judgedTransaction();
    world.cancel();
    world.pay();
    expect(world.path()).toEqual(['started', 'cancelled', 'review']);
    expect(world.payments[0]!.onTimeMinor).toBe(0n);
    world.mine(6);
    world.wait(HOUR);
    expect(world.status).toBe('review');
    expect(world.suspense()).toBe(world.amountDue);
  });

  test('rule22_not_18: an on-time payment in a review that holds other currencies only goes on by rule 2', () => {
    const world = judgedTransaction();
    world.pay({ currency: 'LTC', amount: 1_000n });
    expect(world.status).toBe('review');
    world.pay();
    expect(world.rules()).toEqual([18, 2]);
    world.mine();
    world.mine(12, 'LTC');
    expect(world.status).toBe('succeeded');
    expect([world.available(), world.suspense(), world.suspense('LTC')]).toEqual([world.amountDue, 0n, 1_000n]);
  });

  test('other_after_cancel: another currency after a cancel does not open rule 2 again', () => {
    const world = judgedTransaction();
    world.cancel();
    world.pay({ currency: 'LTC', amount: 1_000n });
    world.pay();
    world.mine(6);
    expect(world.path()).toEqual(['started', 'cancelled', 'review']);
    expect(world.available()).toBe(0n);
  });
});

describe('the word of the merchant', () => {
  test('refused_stays: no automatic acceptance after the merchant has refused', () => {
    const world = judgedTransaction({ latePolicy: 'accept' });
    world.until(W + 2 * MINUTE);
    world.pay({ amount: HALF });
    world.decline();
    world.pay({ amount: 2n * world.amountDue });
    world.mine(6);
    expect(world.path()).toEqual(['started', 'timedout', 'review', 'declined', 'review']);
    expect(world.available()).toBe(0n);
  });

  test('accept_needs_coins: accept with nothing in suspense is refused', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.reorg(1, 'dead');
    expect(world.status).toBe('review');
    expect(() => world.accept()).toThrow('Nothing of this transaction lies in suspense.');
    expect(world.status).toBe('review');
  });

  test('refund_excludes: while a reimbursement is open nothing else decides', () => {
    const world = judgedTransaction({ latePolicy: 'accept' });
    world.until(W + 2 * MINUTE);
    world.pay({ amount: HALF });
    world.mine();
    world.openRefund();
    expect(() => world.accept()).toThrow('under way');
    expect(() => world.decline()).toThrow('under way');
    expect(() => world.acceptExcess()).toThrow('under way');
    world.pay();
    world.mine();
    expect(world.status).toBe('review');
    expect(world.available()).toBe(0n);
  });

  test('refund_excludes: nor does what was lost lead back to succeeded meanwhile', () => {
    const world = judgedTransaction();
    const first = world.pay({ amount: HALF });
    world.pay({ amount: HALF });
    world.mine();
    world.reorg(1, 'out');
    world.resend(first);
    world.mine();
    world.wait(11 * MINUTE);
    expect(world.status).toBe('review');
    world.openRefund();
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect(world.status).toBe('review');
  });

  test('refund_ends: a waiting reimbursement ends when its payments are lost, and resolve is open again', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.until(W + 2 * MINUTE);
    world.pay();
    world.mine();
    world.openRefund();
    expect(world.books.of('refund_payable:txn_1:BTC')).toBe(world.amountDue);
    world.reorg(1, 'dead');
    expect(world.books.of('refund_payable:txn_1:BTC')).toBe(0n);
    expect(world.receivable()).toBe(0n);
    world.decline();
    expect(world.status).toBe('declined');
  });
});

describe('time, price and outages', () => {
  test('gone_not_waited: rule 6 does not wait for payments that are gone', () => {
    const world = judgedTransaction();
    world.pay({ amount: HALF });
    world.mine();
    const other = world.pay({ amount: HALF });
    world.evict(other);
    world.wait(71 * HOUR);
    expect(world.status).toBe('pending');
    world.wait(2 * HOUR);
    expect([world.status, world.suspense()]).toEqual(['declined', HALF]);
  });

  test('rule23_rate: a late payment completes a pending one only if it is still worth the dollars', () => {
    for (const [rate, status] of [
      [98_000n, 'succeeded'],
      [97_000n, 'declined'],
    ] as const) {
      const world = judgedTransaction();
      world.pay({ amount: HALF });
      world.afterGrace();
      world.rate(rate);
      world.pay({ amount: HALF });
      world.mine();
      expect(world.status).toBe(status);
    }
  });

  test('outage_decline: rule 6 waits for the watcher as 7 and 8 do', () => {
    const world = judgedTransaction();
    world.pay({ amount: HALF });
    world.mine();
    world.node('down');
    world.until(W - MINUTE);
    world.pay({ amount: HALF });
    world.until(W + HOUR);
    expect(world.status).toBe('pending');
    world.node('up');
    expect(world.status).toBe('pending');
    world.mine();
    expect(world.status).toBe('succeeded');
  });

  test('outage_mempool: what the first pass after an outage finds is on time', () => {
    const world = judgedTransaction();
    world.node('down');
    world.until(W - MINUTE);
    world.pay();
    world.until(W + HOUR);
    world.node('up');
    expect(world.path()).toEqual(['started', 'pending']);
    world.mine();
    expect(world.status).toBe('succeeded');
  });
});
