// The merchant's decisions: cancel, accept, decline, and the excess alone (rules 12, 14, 20), what each requires and how it refuses.
import { describe, expect, test } from 'vitest';
import { refuseCancel } from '../../../src/core/judge/resolve.ts';
import { Refusal } from '../../../src/core/refusal.ts';
import type { TransactionStatus } from '../../../src/core/transaction-states.ts';
import { HOUR, type JudgedTransaction, judgedTransaction, MINUTE, W } from '../../support/judged-transaction.ts';
import { STATUS_HISTORIES } from '../../support/status-histories.ts';

const HALF = 25_000n;
const ALL = Object.keys(STATUS_HISTORIES);

function refusal(decide: () => void): Refusal {
  try {
    decide();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
const late = (amount: bigint): JudgedTransaction => {
  const judged = judgedTransaction({ latePolicy: 'review' });
  judged.until(W + HOUR);
  judged.pay({ amount });
  return judged;
};

describe('cancel (rule 20)', () => {
  test.each(ALL)('in %s', (status) => {
    const judged = STATUS_HISTORIES[status]!();
    if (['started', 'cancelled'].includes(status)) {
      judged.cancel();
      expect([judged.status, judged.transaction.merchantDecision]).toEqual(['cancelled', 'cancelled']);
    } else if (status === 'pending') {
      judged.cancel();
      expect(judged.path()).toEqual(['started', 'pending', 'cancelled', 'review']);
    } else {
      const refused = refusal(judged.cancel);
      expect([refused.code, refused.httpStatus, judged.status]).toEqual(['transaction_not_cancellable', 409, status]);
      expect(refused.message).toContain(status);
    }
  });

  test.each(ALL)('what is shown of one in %s refuses as its payments do', (status) => {
    for (const confirmations of [0, 1, 2]) {
      const seen = { status: status as TransactionStatus, confirmations };
      if (status === 'started' || status === 'cancelled' || (status === 'pending' && confirmations === 0)) refuseCancel(seen);
      else {
        const { code, message } = refusal(() => refuseCancel(seen));
        const why = status === 'pending' ? 'pending and its payment has confirmations' : status;
        expect([code, message]).toEqual([
          'transaction_not_cancellable',
          `The transaction is ${why}; only a started one, or a pending one without confirmations, can be cancelled.`,
        ]);
      }
    }
  });

  test('a pending one with a confirmation cannot be cancelled any more', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay();
    judged.mine();
    const refused = refusal(judged.cancel);
    expect(refused.message).toContain('pending and its payment has confirmations');
    expect([refused.code, judged.status]).toEqual(['transaction_not_cancellable', 'pending']);
  });

  test('one with a lock and no confirmation can: the lock is no block', () => {
    const judged = judgedTransaction({ currency: 'DASH', usd: 1_000_00n });
    judged.pay({ lock: 'instantsend' });
    judged.cancel();
    expect([judged.transaction.merchantDecision, judged.status]).toEqual(['cancelled', 'review']);
  });

  test('twice is the same while it is cancelled, and refused once payments in flight have led to review', () => {
    const unpaid = STATUS_HISTORIES.started!();
    unpaid.cancel();
    const steps = unpaid.steps.length;
    unpaid.cancel();
    expect([unpaid.steps.length, unpaid.status]).toEqual([steps, 'cancelled']);
    const judged = STATUS_HISTORIES.pending!();
    judged.cancel();
    const refused = refusal(judged.cancel);
    expect([refused.code, judged.status]).toEqual(['transaction_not_cancellable', 'review']);
    expect(refused.message).toContain('review');
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['review', HALF]);
  });

  test('a withdrawn payment that comes back after the cancel leads to review', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    judged.cancel();
    expect(judged.status).toBe('cancelled');
    judged.resend(tx);
    expect(judged.status).toBe('review');
  });

  test('a cancelled one does not time out', () => {
    const judged = STATUS_HISTORIES.cancelled!();
    judged.wait(48 * HOUR);
    expect(judged.status).toBe('cancelled');
  });

  test('what was due is decided first: a race with the last confirmation is won by it', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    expect(refusal(judged.cancel).message).toContain('succeeded');
  });
});

describe('accept (rule 12)', () => {
  test.each(ALL.filter((status) => status !== 'review' && status !== 'declined'))('is refused in %s', (status) => {
    const judged = STATUS_HISTORIES[status]!();
    const refused = refusal(judged.accept);
    expect([refused.code, refused.httpStatus, judged.status]).toEqual(['not_resolvable', 409, status]);
    expect(refused.message).toContain(status);
  });

  test.each(['review', 'declined'] as const)('from %s: confirmed, succeeded, suspense to available', (status) => {
    const judged = STATUS_HISTORIES[status]!();
    judged.accept();
    expect(judged.path().slice(-3)).toEqual([status, 'confirmed', 'succeeded']);
    expect([judged.available(), judged.suspense(), judged.transaction.merchantDecision]).toEqual([HALF, 0n, 'accepted']);
    expect(refusal(judged.accept).code).toBe('not_resolvable');
  });

  test('after a cancel too: the merchant decides anew', () => {
    const judged = STATUS_HISTORIES.cancelled!();
    judged.pay();
    judged.mine();
    judged.accept();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });

  test('needs the R of each payment’s own value', () => {
    const judged = late(300_000n);
    expect(refusal(judged.accept).message).toContain('confirmations');
    judged.mine();
    expect(refusal(judged.accept).code).toBe('not_resolvable');
    judged.mine();
    judged.accept();
    expect(judged.available()).toBe(300_000n);
  });

  test('takes what lies in suspense of the other payment too', () => {
    const judged = late(HALF);
    judged.mine();
    judged.pay({ currency: 'LTC', amount: 900n });
    judged.mine(2, 'LTC');
    judged.accept();
    expect([judged.available(), judged.available('LTC')]).toEqual([HALF, 900n]);
  });

  test('does not wait for a stranger’s unconfirmed payment: that is an extra when it comes', () => {
    const judged = late(HALF);
    judged.mine();
    const dust = judged.pay({ amount: 600n });
    judged.pay({ currency: 'LTC', amount: 900n });
    judged.accept();
    expect([judged.status, judged.available(), judged.suspense(), judged.suspense('LTC')]).toEqual(['succeeded', HALF, 0n, 0n]);
    expect(judged.announced()).toEqual(['transaction.extra_payment']);
    judged.mineOnly(dust);
    judged.mine(2, 'LTC');
    expect([judged.status, judged.available(), judged.suspense(), judged.suspense('LTC')]).toEqual([
      'succeeded',
      HALF,
      600n,
      900n,
    ]);
  });

  test('while nothing has its confirmations yet there is nothing to accept', () => {
    const judged = late(HALF);
    judged.pay({ amount: 600n });
    expect(refusal(judged.accept).message).toContain('confirmations');
    expect(judged.status).toBe('review');
  });

  test('is refused while a payment in suspense is back in the mempool or below its R', () => {
    const judged = late(300_000n);
    judged.mine(2);
    expect(judged.suspense()).toBe(300_000n);
    judged.reorg(2, 'mempool');
    expect([judged.suspense(), refusal(judged.accept).code]).toEqual([300_000n, 'not_resolvable']);
    judged.mine();
    expect(refusal(judged.accept).code).toBe('not_resolvable');
    judged.mine();
    judged.accept();
    expect([judged.status, judged.available()]).toEqual(['succeeded', 300_000n]);
  });

  test('is refused while a payment in suspense has left the chain', () => {
    const judged = late(HALF);
    judged.mine();
    judged.reorg(1, 'out');
    expect(refusal(judged.accept).code).toBe('not_resolvable');
  });

  test('is refused when nothing lies in suspense', () => {
    const judged = late(HALF);
    judged.mine();
    judged.reorg(1, 'dead');
    expect(refusal(judged.accept).message).toContain('suspense');
  });
});

describe('decline (rule 14)', () => {
  test.each(ALL.filter((status) => status !== 'review'))('is refused in %s', (status) => {
    const judged = STATUS_HISTORIES[status]!();
    const refused = refusal(judged.decline);
    expect([refused.code, judged.status]).toEqual(['not_resolvable', status]);
    expect(refused.message).toContain(status);
  });

  test('from review: declined, it stays in suspense; then it can be accepted after all', () => {
    const judged = STATUS_HISTORIES.review!();
    judged.decline();
    expect([judged.status, judged.suspense(), judged.available()]).toEqual(['declined', HALF, 0n]);
    judged.accept();
    expect([judged.status, judged.available()]).toEqual(['succeeded', HALF]);
  });

  test('needs no confirmations', () => {
    const judged = late(HALF);
    judged.decline();
    expect(judged.status).toBe('declined');
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual(['declined', HALF]);
  });
});

describe('the excess alone', () => {
  test.each(['started', 'pending'] as const)('is refused in %s', (status) => {
    expect(refusal(STATUS_HISTORIES[status]!().acceptExcess).code).toBe('not_resolvable');
  });

  test.each(ALL.filter((status) => status !== 'started' && status !== 'pending'))(
    'in %s: moves what lies in suspense, the status stays',
    (status) => {
      const judged = STATUS_HISTORIES[status]!({ latePolicy: 'review' });
      if (['timedout', 'timedout_checked', 'cancelled'].includes(status)) {
        expect(refusal(judged.acceptExcess).message).toContain('suspense');
        return;
      }
      judged.pay({ amount: HALF });
      judged.mine();
      const { status: before } = judged;
      const [available, suspense] = [judged.available(), judged.suspense()];
      expect(suspense >= HALF).toBe(true);
      judged.acceptExcess();
      expect([judged.status, judged.available(), judged.suspense()]).toEqual([before, available + suspense, 0n]);
      expect(refusal(judged.acceptExcess).message).toContain('Nothing');
    },
  );

  test('needs the R of the excess, not of the whole payment', () => {
    const judged = judgedTransaction({ usd: 50_00n });
    judged.pay({ amount: 150_000n }); // 50 USD credited, 100 USD excess
    judged.mine();
    expect(judged.status).toBe('succeeded');
    expect(refusal(judged.acceptExcess).message).toContain('confirmations');
    judged.mine();
    judged.acceptExcess();
    expect([judged.available(), judged.suspense()]).toEqual([150_000n, 0n]);
    const small = judgedTransaction({ usd: 99_00n });
    small.pay({ amount: 198_000n }); // 99 USD of excess in a payment of 198 USD
    small.mine();
    small.acceptExcess();
    expect(small.available()).toBe(198_000n);
  });

  test('twice in one life has two entries', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    for (let n = 0; n < 2; n++) {
      judged.pay({ amount: HALF });
      judged.mine();
      judged.wait(MINUTE);
      judged.acceptExcess();
    }
    expect(judged.available()).toBe(judged.amountDue + 2n * HALF);
    expect([...judged.books.entries.keys()].filter((key) => key.startsWith('rev:'))).toHaveLength(2);
  });
});
