// Reimbursements as the judge sees them: what one takes, when it may leave, and what its end, or the loss of its coins, does to every unit. After
// each move the payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { type JudgedTransaction, judgedTransaction } from '../support/judged-transaction.ts';

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
const payable = (judged: JudgedTransaction, code = 'BTC') => judged.books.of(`refund_payable:txn_1:${code}`);
const places = (judged: JudgedTransaction) => [judged.available(), judged.suspense(), payable(judged), judged.receivable()];
const refusal = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return 'nothing was refused';
};

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

describe('which coins it takes', () => {
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
    expect([...judged.finishRefund().coins.values()]).toEqual([{ available: 0n, suspense: 1n }]);
    judged.openRefund();
    judged.commitRefund();
    judged.pay({ amount: EXTRA });
    judged.mine();
    const refund = judged.finishRefund();
    expect([refund.coins.size, judged.status, judged.suspense()]).toEqual([1, 'reimbursed', EXTRA]);
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

describe('the loss of its coins', () => {
  test('ends one that waits, as a whole: what is left of its coins goes back to where it was', () => {
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

  test('while it is committed is restored once, whether the coin or its end comes first', () => {
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
