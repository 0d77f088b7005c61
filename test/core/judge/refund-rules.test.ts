// Reimbursements beside the rules that change a status: what went back, or is on its way back, is money for none of them. After each move the
// payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { payable, places } from '../../support/judged-refunds.ts';
import { DAY, HOUR, type JudgedTransaction, judgedTransaction, W } from '../../support/judged-transaction.ts';

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
