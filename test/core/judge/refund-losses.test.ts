// What the loss of its payments does to a reimbursement: while it waits, once it is committed, when it is confirmed or can never be paid. After each
// move the payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { payable, places } from '../../support/judged-refunds.ts';
import { type JudgedTransaction, judgedTransaction } from '../../support/judged-transaction.ts';

const HALF = 25_000n;
const EXTRA = 30_000n;

/** What the merchant has from elsewhere. */
function give(judged: JudgedTransaction, amount: bigint): void {
  const postings = [
    { account: 'outside:BTC', amount },
    { account: 'merchant:1:available:BTC', amount: -amount },
  ];
  judged.books.post({ key: 'gift', kind: 'gift', parts: [], postings });
}

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
      give(judged, 500n);
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

  // the customer pays 80,000 in all, whatever is replaced, and gets nothing back: 50,000 are the price, the rest is his until the merchant decides
  describe('that a replacement has inherited, of an excess that never arrives', () => {
    const reimbursed = (feeBps = 0) => {
      const judged = judgedTransaction({ feeBps });
      const tx = judged.pay({ amount: 50_000n + EXTRA });
      judged.mine(6);
      judged.openRefund('excess');
      judged.commitRefund();
      const refund = judged.finishRefund();
      judged.reorg(6, 'mempool');
      return { judged, tx, refund };
    };

    test.each([
      ['before it is in a block', false],
      ['after it was booked', true],
    ] as const)('leaves the excess in suspense: known %s', (_when, isBooked) => {
      const { judged, tx, refund } = reimbursed();
      judged.replace(tx, { split: [50_000n, EXTRA] });
      if (isBooked) judged.mine(6);
      judged.displaceRefund(refund);
      if (!isBooked) judged.mine(6);
      expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, EXTRA, 0n, 0n]);
    });

    test('and was replaced itself, leaves the excess in suspense', () => {
      const { judged, tx, refund } = reimbursed();
      const second = judged.replace(tx, { split: [50_000n, EXTRA] });
      judged.mine(6);
      judged.reorg(6, 'mempool');
      judged.replace(second, { split: [10_000n, 70_000n] });
      judged.displaceRefund(refund);
      judged.mine(6);
      expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, EXTRA, 0n, 0n]);
    });

    test("by several outputs, with a fee: leaves the excess in suspense, and accepted it is the merchant's less the fee", () => {
      const { judged, tx, refund } = reimbursed(100);
      judged.replace(tx, { split: [20_000n, 45_000n, 15_000n] });
      judged.mine(6);
      judged.displaceRefund(refund);
      expect([judged.status, ...places(judged), judged.fees()]).toEqual(['succeeded', 49_500n, EXTRA, 0n, 0n, 500n]);
      judged.acceptExcess();
      expect([judged.available(), judged.suspense(), judged.fees()]).toEqual([79_200n, 0n, 800n]);
      for (const { credited, amount } of judged.payments) expect(credited).toBeLessThanOrEqual(amount);
    });

    test('only in part, is in suspense in this part', () => {
      const { judged, tx, refund } = reimbursed();
      judged.replace(tx, { amount: 60_000n });
      judged.mine(6);
      judged.displaceRefund(refund);
      // of 80,000 it paid 60,000
      expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, 10_000n, 0n, 0n]);
    });

    test("and that has gone back as a whole, is the merchant's loss no more", () => {
      const { judged, tx, refund } = reimbursed();
      judged.replace(tx, { split: [50_000n, EXTRA] });
      judged.mine(6);
      give(judged, EXTRA);
      judged.openRefund('whole');
      judged.commitRefund();
      judged.finishRefund();
      expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
      judged.displaceRefund(refund);
      expect([judged.status, ...places(judged)]).toEqual(['reimbursed', EXTRA, 0n, 0n, 0n]);
    });
  });
});
