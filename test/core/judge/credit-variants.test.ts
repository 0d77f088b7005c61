// Each protection of the model Credit that a feature built so far needs, by its name: the history that goes wrong without that protection,
// and its right result; those about where units are stand in credit-places. The invariants of the model are also checked after every step
// of every history.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, MINUTE, W } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('one rule for each status and payment', () => {
  test('started_late: a late payment noticed while still started follows rule 9', () => {
    const judged = judgedTransaction();
    judged.node('down');
    judged.until(W + 3 * HOUR);
    judged.pay();
    expect(judged.status).toBe('started');
    judged.node('up');
    expect(judged.path()).toEqual(['started', 'review']);
    expect(judged.rules()).toEqual([9]);
  });

  test('cancelled_is_late: after a cancel every payment follows rule 9, on time or not', () => {
    const judged = judgedTransaction();
    judged.cancel();
    judged.pay();
    expect(judged.path()).toEqual(['started', 'cancelled', 'review']);
    expect(judged.payments[0]!.onTimeMinor).toBe(0n);
    judged.mine(6);
    judged.wait(HOUR);
    expect(judged.status).toBe('review');
    expect(judged.suspense()).toBe(judged.amountDue);
  });

  test('rule22_not_18: an on-time payment in a review that holds other currencies only goes on by rule 2', () => {
    const judged = judgedTransaction();
    judged.pay({ currency: 'LTC', amount: 1_000n });
    expect(judged.status).toBe('review');
    judged.pay();
    expect(judged.rules()).toEqual([18, 2]);
    judged.mine();
    judged.mine(12, 'LTC');
    expect(judged.status).toBe('succeeded');
    expect([judged.available(), judged.suspense(), judged.suspense('LTC')]).toEqual([judged.amountDue, 0n, 1_000n]);
  });

  test('other_after_cancel: another currency after a cancel does not open rule 2 again', () => {
    const judged = judgedTransaction();
    judged.cancel();
    judged.pay({ currency: 'LTC', amount: 1_000n });
    judged.pay();
    judged.mine(6);
    expect(judged.path()).toEqual(['started', 'cancelled', 'review']);
    expect(judged.available()).toBe(0n);
  });
});

describe('the decisions of the merchant', () => {
  test('refused_stays: no automatic acceptance after the merchant has refused', () => {
    const judged = judgedTransaction({ latePolicy: 'accept' });
    judged.until(W + 2 * MINUTE);
    judged.pay({ amount: HALF });
    judged.decline();
    judged.pay({ amount: 2n * judged.amountDue });
    judged.mine(6);
    expect(judged.path()).toEqual(['started', 'timedout', 'review', 'declined', 'review']);
    expect(judged.available()).toBe(0n);
  });

  test('accept_needs_payments: accept with nothing in suspense is refused', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.reorg(1, 'dead');
    expect(judged.status).toBe('review');
    expect(() => judged.accept()).toThrow('Nothing of this transaction lies in suspense.');
    expect(judged.status).toBe('review');
  });

  test('refund_excludes: while a reimbursement is open nothing else decides', () => {
    const judged = judgedTransaction({ latePolicy: 'accept' });
    judged.until(W + 2 * MINUTE);
    judged.pay({ amount: HALF });
    judged.mine();
    judged.openRefund();
    expect(() => judged.accept()).toThrow('under way');
    expect(() => judged.decline()).toThrow('under way');
    expect(() => judged.acceptExcess()).toThrow('under way');
    judged.pay();
    judged.mine();
    expect(judged.status).toBe('review');
    expect(judged.available()).toBe(0n);
  });

  test('refund_excludes: what was lost does not lead back to succeeded meanwhile either', () => {
    const judged = judgedTransaction();
    const first = judged.pay({ amount: HALF });
    judged.pay({ amount: HALF });
    judged.mine();
    judged.reorg(1, 'out');
    judged.resend(first);
    judged.mine();
    judged.wait(11 * MINUTE);
    expect(judged.status).toBe('review');
    judged.openRefund();
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect(judged.status).toBe('review');
  });

  test('refund_ends: a waiting reimbursement ends when its payments are lost, and resolve is open again', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.until(W + 2 * MINUTE);
    judged.pay();
    judged.mine();
    judged.openRefund();
    expect(judged.books.of('refund_payable:txn_1:BTC')).toBe(judged.amountDue);
    judged.reorg(1, 'dead');
    expect(judged.books.of('refund_payable:txn_1:BTC')).toBe(0n);
    expect(judged.receivable()).toBe(0n);
    judged.decline();
    expect(judged.status).toBe('declined');
  });
});

describe('time, price and outages', () => {
  test('gone_not_waited: rule 6 does not wait for payments that are gone', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.mine();
    const other = judged.pay({ amount: HALF });
    judged.evict(other);
    judged.wait(71 * HOUR);
    expect(judged.status).toBe('pending');
    judged.wait(2 * HOUR);
    expect([judged.status, judged.suspense()]).toEqual(['declined', HALF]);
  });

  test('rule23_rate: a late payment completes a pending one only if it is still worth the dollars', () => {
    for (const [rate, status] of [
      [98_000n, 'succeeded'],
      [97_000n, 'declined'],
    ] as const) {
      const judged = judgedTransaction();
      judged.pay({ amount: HALF });
      judged.afterGrace();
      judged.rate(rate);
      judged.pay({ amount: HALF });
      judged.mine();
      expect(judged.status).toBe(status);
    }
  });

  test('outage_decline: rule 6 waits for the watcher as 7 and 8 do', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.mine();
    judged.node('down');
    judged.until(W - MINUTE);
    judged.pay({ amount: HALF });
    judged.until(W + HOUR);
    expect(judged.status).toBe('pending');
    judged.node('up');
    expect(judged.status).toBe('pending');
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });

  test('outage_mempool: what the first pass after an outage finds is on time', () => {
    const judged = judgedTransaction();
    judged.node('down');
    judged.until(W - MINUTE);
    judged.pay();
    judged.until(W + HOUR);
    judged.node('up');
    expect(judged.path()).toEqual(['started', 'pending']);
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });
});
