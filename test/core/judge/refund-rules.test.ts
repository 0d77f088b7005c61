// Reimbursements beside the rules that change a status: what went back, or is on its way back, is money for none of them. After each move the
// payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import type { Tx } from '../../support/chain-truth.ts';
import { payable, places, refusal } from '../../support/judged-refunds.ts';
import {
  DAY,
  HOUR,
  type JudgedTransaction,
  type JudgedTransactionOptions,
  judgedTransaction,
  W,
} from '../../support/judged-transaction.ts';

describe('a late order of which a part went back', () => {
  test('is accepted by policy only for what is still here (rule 11)', () => {
    const judged = judgedTransaction({ toleranceBps: 100 });
    judged.until(W + HOUR);
    judged.pay({ amount: 49_250n });
    judged.mine(6);
    expect(judged.status).toBe('review');
    judged.openRefund('excess');
    judged.commitRefund();
    judged.finishRefund();
    judged.pay({ amount: 500n });
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 0n, 500n]);
    judged.pay({ amount: 49_000n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 49_500n]);
  });

  test('is accepted together with what the merchant has accepted of it before', () => {
    const judged = judgedTransaction();
    judged.until(W + HOUR);
    judged.pay({ amount: 30_000n });
    judged.mine(6);
    judged.acceptExcess();
    expect([judged.status, judged.available()]).toEqual(['review', 30_000n]);
    judged.pay({ amount: 20_000n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 50_000n]);
  });
});

describe('an earlier reimbursement that is displaced for good', () => {
  test('takes nothing out of one that is open: its units are those that were sent back', () => {
    for (const end of ['finished', 'failed'] as const) {
      const judged = judgedTransaction();
      judged.pay({ amount: 150_000n });
      judged.mine(6);
      judged.openRefund('excess');
      judged.commitRefund();
      const first = judged.finishRefund();
      judged.openRefund();
      judged.commitRefund();
      judged.displaceRefund(first);
      expect([judged.status, ...places(judged)]).toEqual(['succeeded', 0n, 100_000n, 50_000n, 0n]);
      expect(judged.payments.map(({ inRefund, sentBack }) => [inRefund, sentBack])).toEqual([[50_000n, 0n]]);
      if (end === 'failed') judged.failRefund();
      else judged.finishRefund();
      const after = end === 'failed' ? ['succeeded', 50_000n, 100_000n, 0n, 0n] : ['reimbursed', 0n, 100_000n, 0n, 0n];
      expect([judged.status, ...places(judged)]).toEqual(after);
    }
  });

  test('and of which the payment is lost gives back what its own part had cost, and no more', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: 150_000n });
    judged.mine(6);
    judged.openRefund('excess');
    judged.commitRefund();
    const first = judged.finishRefund();
    judged.openRefund();
    judged.commitRefund();
    judged.reorg(6, 'dead');
    expect([judged.status, judged.receivable(), payable(judged)]).toEqual(['review', 150_000n, 50_000n]);
    judged.displaceRefund(first);
    expect([judged.receivable(), payable(judged)]).toEqual([50_000n, 50_000n]);
    judged.failRefund();
    expect([judged.receivable(), payable(judged), judged.available()]).toEqual([0n, 0n, 0n]);
  });
});

describe('settled (rule 19)', () => {
  const paid = (amount = 50_000n) => {
    const judged = judgedTransaction({ currency: 'DOGE' });
    judged.pay({ amount });
    judged.mine(6);
    return judged;
  };
  test('waits while a reimbursement is open, and comes when that has failed', () => {
    const judged = paid();
    judged.openRefund();
    judged.wait(DAY + HOUR);
    judged.mine(60);
    expect([judged.status, judged.refundStates()]).toEqual(['succeeded', ['ready']]);
    judged.commitRefund();
    judged.failRefund();
    expect(judged.status).toBe('settled');
  });

  test('waits for one of the excess too, and for the credited payments', () => {
    const judged = paid(80_000n);
    judged.mine(60);
    judged.openRefund('excess');
    judged.commitRefund();
    judged.wait(DAY + HOUR);
    judged.mine();
    expect(judged.status).toBe('succeeded');
    judged.reorg(67);
    judged.finishRefund();
    expect(judged.status).toBe('succeeded');
    judged.mine(60);
    expect(judged.status).toBe('settled');
  });
});
describe('a reimbursement of another currency', () => {
  test('leaves the status while a payment of its own is here, booked or not', () => {
    const judged = judgedTransaction({ usd: 5_000_00n });
    judged.pay({ currency: 'LTC', amount: 100_000_000n });
    judged.mine(12, 'LTC');
    judged.openRefund('whole', 'LTC');
    judged.commitRefund();
    judged.until(W + HOUR);
    judged.pay();
    judged.mine();
    judged.finishRefund();
    expect([judged.status, judged.suspense('LTC')]).toEqual(['review', 0n]);
    judged.mine(2);
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });

  test('leaves it for an unconfirmed one, but not for one that went back or is lost', () => {
    const statusAfter = (own: (judged: JudgedTransaction) => void) => {
      const judged = judgedTransaction({ latePolicy: 'review' });
      judged.until(W + HOUR);
      judged.pay({ currency: 'LTC', amount: 700_000n });
      judged.mine(12, 'LTC');
      judged.openRefund('whole', 'LTC');
      judged.commitRefund();
      own(judged);
      judged.finishRefund();
      return judged.status;
    };
    expect(statusAfter((judged) => void judged.pay())).toBe('review');
    expect(statusAfter((judged) => judged.evict(judged.pay()))).toBe('review');
    expect(statusAfter((judged) => judged.doubleSpend(judged.pay()))).toBe('reimbursed');
    expect(statusAfter(() => undefined)).toBe('reimbursed');
  });
});

describe('a reimbursement of the whole beside payments that wait for their booking', () => {
  const BIG = { usd: 5_000_00n } as const;
  const late = (options: JudgedTransactionOptions = BIG): JudgedTransaction => {
    const judged = judgedTransaction(options);
    judged.until(W + HOUR);
    return judged;
  };

  test('takes them too, waits until all are booked and final, and leaves nothing in suspense', () => {
    const judged = late();
    judged.pay({ amount: 5_000n });
    judged.pay();
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['review', 5_000n]);
    judged.openRefund();
    expect([judged.suspense(), payable(judged)]).toEqual([5_000n, 0n]);
    expect(refusal(() => judged.accept())).toBe('not_resolvable');
    judged.mine(2);
    expect([judged.suspense(), payable(judged), judged.refundStates()]).toEqual([0n, judged.amountDue + 5_000n, ['waiting']]);
    judged.mine(3);
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });

  test('takes what the merchant has accepted of them, and ends when that is spent before all are booked', () => {
    for (const isSpent of [false, true]) {
      const judged = late();
      judged.pay({ amount: 5_000n });
      judged.mine();
      judged.acceptExcess();
      judged.pay();
      judged.mine();
      judged.spend(1n);
      expect(refusal(() => judged.openRefund())).toBe('insufficient_balance');
      judged.spend(-1n);
      judged.openRefund();
      if (isSpent) judged.spend(1n);
      judged.mine(2);
      const held = [judged.refundStates(), judged.available(), judged.suspense(), payable(judged)];
      if (isSpent) expect(held).toEqual([[], judged.amountDue + 4_999n, 0n, 0n]);
      else expect(held).toEqual([['waiting'], 0n, 0n, judged.amountDue + 5_000n]);
    }
  });

  test('is refused while one that was lost is back below its depth: that is the merchant’s', () => {
    const judged = judgedTransaction({ usd: 500_00n });
    judged.pay();
    judged.mine(2);
    judged.reorg(2, 'out');
    judged.wait(11 * 60_000);
    const [gone] = judged.chain().txs;
    judged.pay({ amount: 5_000n });
    judged.mine();
    judged.resend(gone as Tx);
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['review', 5_000n]);
    expect(refusal(() => judged.openRefund())).toBe('not_resolvable');
    judged.mine();
    judged.openRefund();
    expect([judged.refundStates(), payable(judged)]).toEqual([['waiting'], judged.amountDue + 5_000n]);
  });

  test('leaves unconfirmed ones out: a stranger’s payment that nobody mines holds up nothing', () => {
    const judged = late({ usd: 500_00n, latePolicy: 'review' });
    judged.pay();
    judged.mine();
    const dust = judged.pay({ amount: 1_000n });
    judged.openRefund();
    judged.evict(dust);
    judged.mine(5);
    expect([judged.refundStates(), payable(judged)]).toEqual([['ready'], judged.amountDue]);
  });

  test('of unconfirmed ones only ends when others are final, or when one of them has waited for 72 hours', () => {
    const open = () => {
      const judged = late({ usd: 500_00n, latePolicy: 'review' });
      const [paid, dust] = [judged.pay(), judged.pay({ amount: 1_000n })];
      judged.openRefund();
      return { judged, paid, dust };
    };
    const mined = open();
    mined.judged.mineOnly(mined.paid);
    mined.judged.mineEmpty(4);
    expect([mined.judged.refundStates(), payable(mined.judged)]).toEqual([['waiting'], 0n]);
    mined.judged.mineEmpty();
    expect([mined.judged.refundStates(), mined.judged.suspense()]).toEqual([[], mined.judged.amountDue]);
    mined.judged.openRefund();
    expect([mined.judged.refundStates(), payable(mined.judged)]).toEqual([['ready'], mined.judged.amountDue]);

    const { judged, paid, dust } = open();
    judged.wait(2 * DAY);
    judged.evict(dust);
    judged.resend(dust);
    judged.wait(DAY - 1);
    expect(judged.refundStates()).toEqual(['waiting']);
    judged.wait(1);
    expect(judged.refundStates()).toEqual([]);
    expect(refusal(() => judged.openRefund())).toBe('not_resolvable');
    judged.mineOnly(paid);
    judged.openRefund();
    judged.mineEmpty(5);
    expect([judged.refundStates(), payable(judged)]).toEqual([['ready'], judged.amountDue]);
  });
});
