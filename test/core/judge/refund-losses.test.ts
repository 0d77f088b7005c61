// What the loss of its payments does to a reimbursement: while it waits, once it is committed, when it is confirmed or can never be paid. After each
// move the payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { payable, places } from '../../support/judged-refunds.ts';
import { judgedTransaction } from '../../support/judged-transaction.ts';

const HALF = 25_000n;
const EXTRA = 30_000n;

describe('the loss of its payments', () => {
  test('ends one that waits, as a whole: what is left of its payments goes back to where it was', () => {
    const judged = judgedTransaction();
    const [one] = [judged.pay({ amount: HALF }), judged.pay({ amount: HALF + EXTRA })];
    judged.mine(2);
    judged.openRefund();
    expect(places(judged)).toEqual([0n, 0n, 80_000n, 0n]);
    judged.reorg(2, 'out');
    judged.resend(one);
    judged.mineOnly(one);
    judged.wait(11 * 60_000);
    expect(judged.refundStates()).toEqual([]);
    expect([judged.status, ...places(judged)]).toEqual(['review', HALF, 0n, 0n, 0n]);
  });

  test('of an excess that waits leaves a paid transaction alone', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.pay({ amount: EXTRA });
    judged.mine();
    judged.openRefund('excess');
    judged.reorg(1, 'dead');
    expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, 0n, 0n, 0n]);
    expect(judged.refundStates()).toEqual([]);
  });

  test('after it was committed is what the customer got: a receivable, also once it is confirmed; what is back restores it', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine(6);
    judged.openRefund();
    judged.commitRefund();
    judged.reorg(6, 'out');
    judged.wait(11 * 60_000);
    expect([judged.status, ...places(judged)]).toEqual(['review', 0n, 0n, 50_000n, 50_000n]);
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 50_000n]);
    judged.resend(tx);
    judged.mine();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });

  test('after it was committed costs the merchant nothing where the customer never gets it', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine(6);
    judged.openRefund();
    judged.commitRefund();
    judged.reorg(6, 'out');
    judged.wait(11 * 60_000);
    judged.failRefund();
    expect([judged.status, ...places(judged)]).toEqual(['review', 0n, 0n, 0n, 0n]);
    // it is nobody's when it comes back: the merchant decides
    judged.resend(tx);
    judged.mine();
    expect([judged.status, ...places(judged)]).toEqual(['review', 0n, 50_000n, 0n, 0n]);
  });

  test('of a confirmed one that was displaced too costs the merchant nothing', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine(6);
    judged.openRefund();
    judged.commitRefund();
    const refund = judged.finishRefund();
    judged.reorg(6, 'dead');
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 50_000n]);
    judged.displaceRefund(refund);
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });

  test('while it is committed is restored once, whether the payment or its end comes first', () => {
    for (const first of ['back', 'failed'] as const) {
      const judged = judgedTransaction({ feeBps: 100 });
      const tx = judged.pay();
      judged.mine(6);
      judged.books.post({
        key: 'gift',
        kind: 'gift',
        parts: [],
        postings: [
          { account: 'outside:BTC', amount: 500n },
          { account: 'merchant:1:available:BTC', amount: -500n },
        ],
      });
      judged.openRefund();
      judged.commitRefund();
      judged.reorg(6, 'out');
      judged.wait(11 * 60_000);
      if (first === 'failed') judged.failRefund();
      judged.resend(tx);
      judged.mine(6);
      if (first === 'back') judged.failRefund();
      const sum = judged.available() + judged.suspense() + judged.fees();
      expect([first, payable(judged), judged.receivable(), sum]).toEqual([first, 0n, 0n, 50_500n]);
    }
  });
});
