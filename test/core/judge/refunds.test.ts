// Reimbursements as the judge sees them: what one takes, when it may leave, and what its end, or the loss of its payments, does to every unit. After
// each move the payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { payable, places, refusal } from '../../support/judged-refunds.ts';
import { type JudgedTransaction, judgedTransaction } from '../../support/judged-transaction.ts';

const HALF = 25_000n;
const EXTRA = 30_000n;

/** Succeeded, with an excess in suspense: 50,000 are credited. */
function paidTooMuch(): JudgedTransaction {
  const judged = judgedTransaction();
  judged.pay({ amount: judged.amountDue + EXTRA });
  judged.mine(2);
  expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', 50_000n, EXTRA]);
  return judged;
}
describe('a reimbursement', () => {
  test('takes what is credited and what is in suspense, and waits for the final depth', () => {
    const judged = paidTooMuch();
    judged.openRefund();
    expect(places(judged)).toEqual([0n, 0n, 80_000n, 0n]);
    expect(judged.refundStates()).toEqual(['waiting']);
    judged.mine(3);
    expect(judged.refundStates()).toEqual(['waiting']);
    judged.mine();
    expect([judged.refundStates(), judged.status]).toEqual([['ready'], 'succeeded']);
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });

  test('of the excess takes what is in suspense only, and changes no status', () => {
    const judged = paidTooMuch();
    judged.openRefund('excess');
    expect(places(judged)).toEqual([50_000n, 0n, EXTRA, 0n]);
    judged.mine(4);
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, 0n, 0n, 0n]);
    // the rest can go back later
    judged.openRefund();
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });

  test('is refused while one is open, where nothing is here, for less than it costs, and for what is no longer in the balance', () => {
    const judged = paidTooMuch();
    expect(refusal(() => judged.openRefund('whole', 'LTC'))).toBe('not_resolvable');
    expect(refusal(() => judged.openRefund('excess', 'BTC', EXTRA + 1n))).toBe('amount_below_minimum');
    judged.spend(1n);
    expect(refusal(() => judged.openRefund())).toBe('insufficient_balance');
    judged.openRefund('excess', 'BTC', EXTRA);
    expect(refusal(() => judged.openRefund())).toBe('not_resolvable');
    expect(refusal(() => judged.acceptExcess())).toBe('not_resolvable');
    const waiting = judgedTransaction();
    waiting.pay();
    expect(refusal(() => waiting.openRefund())).toBe('not_resolvable');
    expect(refusal(() => waiting.openRefund('excess'))).toBe('not_resolvable');
  });

  test('is taken of a payment without confirmations too: it is held when that is booked, and ends when that is withdrawn', () => {
    const late = (): JudgedTransaction => {
      const judged = judgedTransaction();
      judged.cancel();
      judged.pay();
      expect([judged.status, judged.suspense()]).toEqual(['review', 0n]);
      judged.openRefund();
      expect([judged.refundStates(), payable(judged)]).toEqual([['waiting'], 0n]);
      expect(refusal(() => judged.accept())).toBe('not_resolvable');
      return judged;
    };
    const mined = late();
    mined.mine();
    expect([mined.refundStates(), payable(mined), mined.suspense()]).toEqual([['waiting'], 50_000n, 0n]);
    mined.mine(5);
    expect(mined.refundStates()).toEqual(['ready']);
    const withdrawn = late();
    withdrawn.doubleSpend(withdrawn.chain().txs.at(-1)!);
    expect([withdrawn.refundStates(), payable(withdrawn), withdrawn.status]).toEqual([[], 0n, 'review']);
  });

  test('that cannot be paid any more gives each unit back to where it was, and resolve is open again', () => {
    const judged = paidTooMuch();
    judged.openRefund();
    judged.mine(4);
    judged.commitRefund();
    judged.failRefund();
    expect([judged.status, ...places(judged)]).toEqual(['succeeded', 50_000n, EXTRA, 0n, 0n]);
    judged.acceptExcess();
    expect(places(judged)).toEqual([80_000n, 0n, 0n, 0n]);
  });

  test('that was confirmed and displaced for good lies in suspense: it can be sent again, and the status stays', () => {
    const judged = paidTooMuch();
    judged.openRefund();
    judged.mine(4);
    judged.commitRefund();
    const refund = judged.finishRefund();
    judged.displaceRefund(refund);
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 80_000n, 0n, 0n]);
    judged.openRefund('excess');
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, ...places(judged)]).toEqual(['reimbursed', 0n, 0n, 0n, 0n]);
  });
});

describe('which payments it takes', () => {
  test('waits for the final depth of every one of them', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine(5);
    judged.pay({ amount: EXTRA });
    judged.mine();
    judged.openRefund();
    expect([judged.refundStates(), payable(judged)]).toEqual([['waiting'], 80_000n]);
    judged.mine(4);
    expect(judged.refundStates()).toEqual(['waiting']);
    judged.mine();
    expect(judged.refundStates()).toEqual(['ready']);
  });

  test('only those with units in it, of one unit too; one that comes meanwhile stays in suspense, and the status is of the whole', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.pay({ amount: 1n });
    judged.mine(6);
    judged.openRefund('excess');
    judged.commitRefund();
    expect([...judged.finishRefund().shares.values()]).toEqual([{ available: 0n, suspense: 1n }]);
    judged.openRefund();
    judged.commitRefund();
    judged.pay({ amount: EXTRA });
    judged.mine();
    const refund = judged.finishRefund();
    expect([refund.shares.size, judged.status, judged.suspense()]).toEqual([1, 'reimbursed', EXTRA]);
    expect(refusal(() => judged.openRefund())).toBe('not_resolvable');
    // an earlier one that never arrived ends nothing else
    judged.openRefund('excess');
    judged.displaceRefund(refund);
    expect([judged.refundStates(), judged.suspense(), payable(judged)]).toEqual([['waiting'], 50_000n, EXTRA]);
  });

  test('before any is booked: those of its currency that are there, held when all are booked', () => {
    const judged = judgedTransaction();
    judged.cancel();
    const gone = judged.pay({ amount: HALF });
    judged.evict(gone);
    expect(refusal(() => judged.openRefund())).toBe('not_resolvable');
    const [one, two] = [judged.pay({ amount: HALF }), judged.pay({ amount: EXTRA })];
    judged.pay({ currency: 'LTC', amount: 700_000n });
    judged.openRefund();
    judged.mineOnly(one);
    judged.mine(12, 'LTC');
    expect([judged.suspense(), judged.suspense('LTC'), payable(judged)]).toEqual([HALF, 700_000n, 0n]);
    judged.mineOnly(two);
    expect([judged.suspense(), judged.suspense('LTC'), payable(judged)]).toEqual([0n, 700_000n, HALF + EXTRA]);
  });
});

describe('another currency at the address', () => {
  test('goes back by itself: reimbursed where nothing of the right one is here, otherwise the status stays', () => {
    const wrong = judgedTransaction();
    wrong.pay({ currency: 'LTC', amount: 700_000n });
    wrong.mine(12, 'LTC');
    expect(wrong.status).toBe('review');
    wrong.openRefund('whole', 'LTC');
    expect([wrong.suspense('LTC'), payable(wrong, 'LTC'), wrong.refundStates()]).toEqual([0n, 700_000n, ['ready']]);
    wrong.commitRefund();
    wrong.finishRefund();
    expect(wrong.status).toBe('reimbursed');

    const both = judgedTransaction();
    both.pay();
    both.mine();
    both.pay({ currency: 'LTC', amount: 700_000n });
    both.mine(12, 'LTC');
    both.openRefund('whole', 'LTC');
    both.commitRefund();
    both.finishRefund();
    expect([both.status, both.available(), both.suspense('LTC')]).toEqual(['succeeded', 50_000n, 0n]);
  });

  test('counts what is here of the right one when it is confirmed, and nothing of its own that comes later', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.pay({ amount: 2n * judged.amountDue });
    judged.mine();
    judged.pay({ currency: 'LTC', amount: 700_000n });
    judged.mine(12, 'LTC');
    expect([judged.available(), judged.suspense()]).toEqual([50_000n, 50_000n]);
    judged.openRefund('whole', 'LTC');
    judged.commitRefund();
    judged.finishRefund();
    expect(judged.status).toBe('succeeded');

    const lost = judgedTransaction();
    lost.cancel();
    lost.pay();
    lost.mine();
    lost.reorg(1, 'dead');
    lost.pay({ currency: 'LTC', amount: 700_000n });
    lost.mine(12, 'LTC');
    lost.openRefund('whole', 'LTC');
    lost.commitRefund();
    lost.pay({ currency: 'LTC', amount: 300_000n });
    lost.mine(12, 'LTC');
    lost.finishRefund();
    expect([lost.status, lost.suspense('LTC')]).toEqual(['reimbursed', 300_000n]);
  });
});
