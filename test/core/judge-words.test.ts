// The merchant's decisions: cancel, accept, decline, and the excess alone (rules 12, 14, 20), what each requires and how it refuses.
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { HOUR, type JudgedTransaction, judgedTransaction, MINUTE, W } from '../support/judged-transaction.ts';
import { REACH } from '../support/reach.ts';

const HALF = 25_000n;
const ALL = Object.keys(REACH);

function refusal(word: () => void): Refusal {
  try {
    word();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
const late = (amount: bigint): JudgedTransaction => {
  const world = judgedTransaction({ latePolicy: 'review' });
  world.until(W + HOUR);
  world.pay({ amount });
  return world;
};

describe('cancel (rule 20)', () => {
  test.each(ALL)('in %s', (status) => {
    const world = REACH[status]!();
    if (['started', 'cancelled'].includes(status)) {
      world.cancel();
      expect([world.status, world.transaction.merchantDecision]).toEqual(['cancelled', 'cancelled']);
    } else if (status === 'pending') {
      world.cancel();
      expect(world.path()).toEqual(['started', 'pending', 'cancelled', 'review']);
    } else {
      const refused = refusal(world.cancel);
      expect([refused.code, refused.httpStatus, world.status]).toEqual(['transaction_not_cancellable', 409, status]);
      expect(refused.message).toContain(status);
    }
  });

  test('a pending one with a confirmation cannot be cancelled any more', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay();
    world.mine();
    const refused = refusal(world.cancel);
    expect(refused.message).toContain('pending');
    expect([refused.code, world.status]).toEqual(['transaction_not_cancellable', 'pending']);
  });

  test('one with a lock and no confirmation can: the lock is no block', () => {
    const world = judgedTransaction({ currency: 'DASH', usd: 1_000_00n });
    world.pay({ lock: 'instantsend' });
    world.cancel();
    expect([world.transaction.merchantDecision, world.status]).toEqual(['cancelled', 'review']);
  });

  test('twice is the same while it is cancelled, and refused once payments in flight have led to review', () => {
    const unpaid = REACH.started!();
    unpaid.cancel();
    const steps = unpaid.steps.length;
    unpaid.cancel();
    expect([unpaid.steps.length, unpaid.status]).toEqual([steps, 'cancelled']);
    const world = REACH.pending!();
    world.cancel();
    const refused = refusal(world.cancel);
    expect([refused.code, world.status]).toEqual(['transaction_not_cancellable', 'review']);
    expect(refused.message).toContain('review');
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['review', HALF]);
  });

  test('a withdrawn payment that comes back after the cancel leads to review', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.evict(tx);
    world.cancel();
    expect(world.status).toBe('cancelled');
    world.resend(tx);
    expect(world.status).toBe('review');
  });

  test('a cancelled one does not time out', () => {
    const world = REACH.cancelled!();
    world.wait(48 * HOUR);
    expect(world.status).toBe('cancelled');
  });

  test('what was due is decided first: a race with the last confirmation is won by it', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    expect(refusal(world.cancel).message).toContain('succeeded');
  });
});

describe('accept (rule 12)', () => {
  test.each(ALL.filter((status) => status !== 'review' && status !== 'declined'))('is refused in %s', (status) => {
    const world = REACH[status]!();
    const refused = refusal(world.accept);
    expect([refused.code, refused.httpStatus, world.status]).toEqual(['not_resolvable', 409, status]);
    expect(refused.message).toContain(status);
  });

  test.each(['review', 'declined'] as const)('from %s: confirmed, succeeded, suspense to available', (status) => {
    const world = REACH[status]!();
    world.accept();
    expect(world.path().slice(-3)).toEqual([status, 'confirmed', 'succeeded']);
    expect([world.available(), world.suspense(), world.transaction.merchantDecision]).toEqual([HALF, 0n, 'accepted']);
    expect(refusal(world.accept).code).toBe('not_resolvable');
  });

  test('after a cancel too: the merchant takes the word back', () => {
    const world = REACH.cancelled!();
    world.pay();
    world.mine();
    world.accept();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
  });

  test('needs the R of each payment’s own value', () => {
    const world = late(300_000n);
    expect(refusal(world.accept).message).toContain('confirmations');
    world.mine();
    expect(refusal(world.accept).code).toBe('not_resolvable');
    world.mine();
    world.accept();
    expect(world.available()).toBe(300_000n);
  });

  test('takes what lies in suspense of the other payment too', () => {
    const world = late(HALF);
    world.mine();
    world.pay({ currency: 'LTC', amount: 900n });
    world.mine(2, 'LTC');
    world.accept();
    expect([world.available(), world.available('LTC')]).toEqual([HALF, 900n]);
  });

  test('does not wait for what somebody else sends and nobody mines: that is an extra when it comes', () => {
    const world = late(HALF);
    world.mine();
    const dust = world.pay({ amount: 600n });
    world.pay({ currency: 'LTC', amount: 900n });
    world.accept();
    expect([world.status, world.available(), world.suspense(), world.suspense('LTC')]).toEqual(['succeeded', HALF, 0n, 0n]);
    expect(world.announced()).toEqual(['transaction.extra_payment']);
    world.mineOnly(dust);
    world.mine(2, 'LTC');
    expect([world.status, world.available(), world.suspense(), world.suspense('LTC')]).toEqual(['succeeded', HALF, 600n, 900n]);
  });

  test('while nothing has its confirmations yet there is nothing to accept', () => {
    const world = late(HALF);
    world.pay({ amount: 600n });
    expect(refusal(world.accept).message).toContain('confirmations');
    expect(world.status).toBe('review');
  });

  test('is refused while a payment in suspense is back in the mempool or below its R', () => {
    const world = late(300_000n);
    world.mine(2);
    expect(world.suspense()).toBe(300_000n);
    world.reorg(2, 'mempool');
    expect([world.suspense(), refusal(world.accept).code]).toEqual([300_000n, 'not_resolvable']);
    world.mine();
    expect(refusal(world.accept).code).toBe('not_resolvable');
    world.mine();
    world.accept();
    expect([world.status, world.available()]).toEqual(['succeeded', 300_000n]);
  });

  test('is refused while a payment in suspense has left the chain', () => {
    const world = late(HALF);
    world.mine();
    world.reorg(1, 'out');
    expect(refusal(world.accept).code).toBe('not_resolvable');
  });

  test('is refused when nothing lies in suspense', () => {
    const world = late(HALF);
    world.mine();
    world.reorg(1, 'dead');
    expect(refusal(world.accept).message).toContain('suspense');
  });
});

describe('decline (rule 14)', () => {
  test.each(ALL.filter((status) => status !== 'review'))('is refused in %s', (status) => {
    const world = REACH[status]!();
    const refused = refusal(world.decline);
    expect([refused.code, world.status]).toEqual(['not_resolvable', status]);
    expect(refused.message).toContain(status);
  });

  test('from review: declined, it stays in suspense; then it can be accepted after all', () => {
    const world = REACH.review!();
    world.decline();
    expect([world.status, world.suspense(), world.available()]).toEqual(['declined', HALF, 0n]);
    world.accept();
    expect([world.status, world.available()]).toEqual(['succeeded', HALF]);
  });

  test('needs no confirmations', () => {
    const world = late(HALF);
    world.decline();
    expect(world.status).toBe('declined');
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['declined', HALF]);
  });
});

describe('the excess alone', () => {
  test.each(['started', 'pending'] as const)('is refused in %s', (status) => {
    expect(refusal(REACH[status]!().acceptExcess).code).toBe('not_resolvable');
  });

  test.each(ALL.filter((status) => status !== 'started' && status !== 'pending'))(
    'in %s: moves what lies in suspense, the status stays',
    (status) => {
      const world = REACH[status]!({ latePolicy: 'review' });
      if (['timedout', 'timedout_checked', 'cancelled'].includes(status)) {
        expect(refusal(world.acceptExcess).message).toContain('suspense');
        return;
      }
      world.pay({ amount: HALF });
      world.mine();
      const { status: before } = world;
      const [available, suspense] = [world.available(), world.suspense()];
      expect(suspense >= HALF).toBe(true);
      world.acceptExcess();
      expect([world.status, world.available(), world.suspense()]).toEqual([before, available + suspense, 0n]);
      expect(refusal(world.acceptExcess).message).toContain('Nothing');
    },
  );

  test('needs the R of the excess, not of the whole payment', () => {
    const world = judgedTransaction({ usd: 50_00n });
    world.pay({ amount: 150_000n }); // 50 USD credited, 100 USD excess
    world.mine();
    expect(world.status).toBe('succeeded');
    expect(refusal(world.acceptExcess).message).toContain('confirmations');
    world.mine();
    world.acceptExcess();
    expect([world.available(), world.suspense()]).toEqual([150_000n, 0n]);
    const small = judgedTransaction({ usd: 99_00n });
    small.pay({ amount: 198_000n }); // 99 USD of excess in a payment of 198 USD
    small.mine();
    small.acceptExcess();
    expect(small.available()).toBe(198_000n);
  });

  test('twice in one life has two entries', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    for (let n = 0; n < 2; n++) {
      world.pay({ amount: HALF });
      world.mine();
      world.wait(MINUTE);
      world.acceptExcess();
    }
    expect(world.available()).toBe(world.amountDue + 2n * HALF);
    expect([...world.books.entries.keys()].filter((key) => key.startsWith('rev:'))).toHaveLength(2);
  });
});
