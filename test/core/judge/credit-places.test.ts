// The protections of the model Credit, by their names as in credit-variants, about where the units of payments are: what a loss takes, what
// its return restores, when and under which key a payment is booked.
import { describe, expect, test } from 'vitest';
import { judgedTransaction, MINUTE, SECOND } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('losses', () => {
  test('reverse_in_place: a loss is taken from where each unit lies now, the rest is the receivable', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: 2n * judged.amountDue });
    judged.mine(2);
    expect([judged.available(), judged.suspense()]).toEqual([judged.amountDue, judged.amountDue]);
    judged.acceptExcess();
    judged.spend(60_000n);
    judged.reorg(2, 'dead');
    expect([judged.available(), judged.suspense(), judged.receivable()]).toEqual([0n, 0n, 60_000n]);
    expect(judged.status).toBe('review');
  });

  test('back_needs_sum: back from rule 17 only when what is credited is enough, or all is back', () => {
    const judged = judgedTransaction();
    const [one, two] = [judged.pay({ amount: HALF }), judged.pay({ amount: HALF })];
    judged.mine();
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    expect(judged.status).toBe('review');
    judged.resend(one);
    judged.mineOnly(one);
    expect([judged.status, judged.available()]).toEqual(['review', HALF]);
    judged.resend(two);
    judged.mineOnly(two);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 2n * HALF]);
    expect(judged.path().slice(-3)).toEqual(['review', 'confirmed', 'succeeded']);
  });

  test('in_place_refund: a reimbursement in review takes each unit from where it lies, credited ones too, and a loss takes them from there', () => {
    const halfCredited = () => {
      const judged = judgedTransaction({ latePolicy: 'review' });
      const [one] = [judged.pay({ amount: HALF }), judged.pay({ amount: HALF })];
      judged.mine();
      judged.reorg(1, 'out');
      judged.wait(11 * MINUTE);
      judged.resend(one);
      judged.mineOnly(one);
      judged.pay({ amount: 10_000n });
      judged.mineOnly(judged.chain().txs.at(-1)!);
      expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', HALF, 10_000n]);
      judged.openRefund();
      expect([judged.available(), judged.suspense(), judged.books.of('refund_payable:txn_1:BTC')]).toEqual([
        0n,
        0n,
        HALF + 10_000n,
      ]);
      return judged;
    };
    const waiting = halfCredited();
    waiting.reorg(2, 'dead');
    expect([waiting.available(), waiting.receivable(), waiting.books.of('refund_payable:txn_1:BTC')]).toEqual([0n, 0n, 0n]);
    const sent = halfCredited();
    sent.finishRefund();
    expect(sent.status).toBe('reimbursed');
    sent.reorg(2, 'dead');
    expect([sent.available(), sent.suspense(), sent.receivable()]).toEqual([0n, 0n, HALF + 10_000n]);
  });

  test('extra_cannot_reopen: losing a payment that was only in suspense leaves succeeded alone', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.pay({ amount: HALF });
    judged.mine();
    expect(judged.suspense()).toBe(HALF);
    judged.reorg(1, 'dead');
    expect([judged.status, judged.suspense(), judged.receivable(), judged.available()]).toEqual([
      'succeeded',
      0n,
      0n,
      judged.amountDue,
    ]);
  });

  test('back_restores: a payment that is back restores what its loss took: receivable, then available', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    const tx = judged.pay({ amount: judged.amountDue + 10_000n });
    judged.mine(2);
    judged.spend(30_000n);
    judged.reorg(2, 'out');
    judged.wait(11 * MINUTE);
    expect([judged.available(), judged.suspense(), judged.receivable()]).toEqual([0n, 0n, 30_000n]);
    judged.decline(); // in every status
    judged.resend(tx);
    judged.mine();
    expect([judged.available(), judged.suspense(), judged.receivable()]).toEqual([20_000n, 10_000n, 0n]);
  });

  test('twin_is_same: a malleated twin takes over the entry and the place of the original', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine();
    judged.reorg(1);
    const entries = judged.books.entries.size;
    const twin = judged.malleate(tx);
    expect(judged.path()).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(judged.payments.map((payment) => payment.txid)).toEqual([twin.txid]);
    expect(judged.books.entries.size).toBe(entries);
    expect(judged.available()).toBe(judged.amountDue);
  });
});

describe('where payments lie', () => {
  test('suspense_everywhere: a payment at R is booked in every status but started, pending, confirmed', () => {
    const judged = judgedTransaction({ settlementMs: 0 });
    judged.pay({ amount: HALF });
    judged.pay({ currency: 'LTC', amount: 1_000n });
    judged.mine(12, 'LTC');
    expect([judged.status, judged.suspense('LTC')]).toEqual(['pending', 1_000n]);
    judged.pay({ amount: HALF });
    judged.mine(6);
    judged.wait(SECOND);
    expect(judged.status).toBe('settled');
    judged.pay({ amount: HALF });
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['settled', HALF]);
    judged.mine(6);
    judged.openRefund();
    judged.finishRefund();
    judged.pay({ amount: HALF });
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['reimbursed', HALF]);
  });

  test('resolve_anywhere: payments in suspense can be resolved in every status', () => {
    const judged = judgedTransaction({ settlementMs: 0 });
    judged.pay();
    judged.mine(6);
    judged.wait(SECOND);
    judged.pay({ amount: HALF });
    judged.mine();
    judged.acceptExcess();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['settled', judged.amountDue + HALF, 0n]);
    judged.openRefund();
    judged.finishRefund();
    judged.pay({ amount: HALF });
    judged.mine();
    judged.acceptExcess();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['reimbursed', HALF, 0n]);
  });

  test('unique_key: a second worker that decides on the same facts books under the same key', () => {
    const stories = [1, 2].map(() => {
      const judged = judgedTransaction();
      judged.pay();
      judged.mine();
      return [...judged.books.entries.values()].map((entry) => entry.key.replace(/t\d+/, 'txid'));
    });
    expect(stories[0]).toEqual(['dep:btc:txid:0']);
    expect(stories[1]).toEqual(stories[0]);
  });

  test('credit_at_R: nothing is credited at first sight, nor one confirmation before R', () => {
    const judged = judgedTransaction({ usd: 1_000_00n });
    judged.pay();
    judged.mine(2);
    expect([judged.status, judged.available(), judged.books.entries.size]).toEqual(['pending', 0n, 0]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });
});
