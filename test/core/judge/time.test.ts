// What only time causes: the window, the day after, withdrawn payments, settlement (rules 7, 8, 15, 19); and that none of it happens while
// our own node is behind. The test setup also checks that the judge is woken whenever a rule applies.
import { describe, expect, test } from 'vitest';
import type { Case } from '../../../src/core/judge/case.ts';
import { judge } from '../../../src/core/judge/judge.ts';
import { DAY, HOUR, judgedTransaction, MINUTE, SECOND, T0, W } from '../../support/judged-transaction.ts';
import { newCase, newPayment, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const HALF = 25_000n;

describe('the window (rules 7 and 8)', () => {
  test('times out at W and not before', () => {
    const judged = judgedTransaction();
    judged.until(W - 1);
    expect([judged.status, judged.verdict.dueAtMs]).toEqual(['started', W]);
    judged.until(W);
    expect([judged.path(), judged.rules()]).toEqual([['started', 'timedout'], [7]]);
  });

  test('a day after creation the chain is looked up once more, and not before', () => {
    const judged = judgedTransaction();
    judged.until(T0 + DAY - 1);
    expect([judged.status, judged.verdict.dueAtMs]).toEqual(['timedout', T0 + DAY]);
    expect(judged.transaction.lookedUpAtMs).toBeNull();
    judged.until(T0 + DAY);
    expect([judged.rules(), judged.transaction.lookedUpAtMs]).toEqual([[7, 8], T0 + DAY]);
  });

  test('what is paid meanwhile is looked up no more', () => {
    const it = newCase([newPayment(1)], { transaction: { status: 'timedout', lookupWanted: true } });
    judge(it);
    expect([it.transaction.status, it.transaction.lookupWanted]).toEqual(['pending', false]);
  });

  test('while the node is down nothing times out; when it is back and nothing was paid, it does', () => {
    const judged = judgedTransaction();
    judged.node('down');
    judged.until(T0 + 3 * DAY);
    expect(judged.status).toBe('started');
    judged.node('up');
    expect(judged.status).toBe('timedout_checked');
  });

  test('a timed out one waits for its look-up while the node is down', () => {
    const judged = judgedTransaction();
    judged.until(W);
    judged.node('down');
    judged.until(T0 + 3 * DAY);
    expect([judged.status, judged.transaction.lookupWanted]).toEqual(['timedout', false]);
    judged.node('up');
    expect(judged.status).toBe('timedout_checked');
  });

  test('another chain’s node neither delays it nor speeds it up', () => {
    const judged = judgedTransaction();
    judged.node('down', 'LTC');
    judged.until(W);
    expect(judged.status).toBe('timedout');
  });
});

describe('withdrawn (rule 15)', () => {
  test('only when every payment is dead', () => {
    const judged = judgedTransaction();
    const one = judged.pay({ amount: HALF });
    const two = judged.pay({ amount: HALF });
    judged.doubleSpend(one);
    expect(judged.status).toBe('pending');
    judged.evict(two);
    judged.wait(71 * HOUR);
    expect(judged.status).toBe('pending');
    judged.wait(HOUR);
    expect(judged.rules().slice(0, 2)).toEqual([2, 15]);
  });

  test('72 hours out of the mempool, not a second less; back in between it counts anew', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    judged.wait(72 * HOUR - SECOND);
    judged.resend(tx);
    expect(judged.status).toBe('pending');
    judged.evict(tx);
    judged.wait(72 * HOUR - SECOND);
    expect(judged.status).toBe('pending');
    judged.wait(SECOND);
    expect(judged.status).toBe('timedout_checked');
  });

  test('after the window it is timed out, also before the watcher has written how far it is', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.node('down');
    judged.until(W + HOUR);
    const it: Case = {
      transaction: { ...judged.transaction },
      payments: judged.payments.map((payment) => ({
        ...payment,
        state: 'conflicted',
        conflictTxid: 'rival',
        goneSinceMs: judged.now,
      })),
      nowMs: judged.now,
      chains: new Map([['BTC', judged.chain().view]]),
      blocks: new Map(),
      feeBps: 0,
      settlementMs: DAY,
      balances: null,
      refunds: [],
      steps: [],
    };
    judge(it);
    expect([it.steps.length, it.transaction.status]).toEqual([1, 'timedout']);
  });

  test('at W it is timed out, a millisecond earlier it waits again', () => {
    for (const [nowMs, status] of [
      [WINDOW_END_MS - 1, 'started'],
      [WINDOW_END_MS, 'timedout'],
    ] as const) {
      const gone = { state: 'conflicted', conflictTxid: 'rival', classified: true, onTimeMinor: 1_000n } as const;
      // the watcher has not come so far: rule 7 does not apply
      const chains = new Map([['BTC', { tipHeight: TIP, timeMs: WINDOW_END_MS - 60_000 }]] as const);
      const it = newCase([newPayment(1, gone)], { nowMs, chains, transaction: { status: 'pending' } });
      judge(it);
      expect(it.steps).toMatchObject([{ from: 'pending', to: status, rule: 15 }]);
    }
  });

  test('while it is out it shows nothing received, and still waits', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    expect([judged.status, judged.verdict.receivedMinor, judged.verdict.youngest]).toEqual(['pending', 0n, null]);
    expect(judged.verdict.dueAtMs).not.toBeNull();
  });

  test('the 72 hours do not pass while our node is down', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    judged.wait(HOUR);
    judged.node('down');
    judged.wait(100 * HOUR);
    expect(judged.status).toBe('pending');
    judged.resend(tx);
    judged.node('up');
    expect(judged.status).toBe('pending');
  });

  test('of its own currency: another that is there does not keep it pending', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.pay({ currency: 'LTC' });
    judged.doubleSpend(tx);
    expect(judged.status).toBe('started');
  });

  test('before W the transaction waits for another payment', () => {
    const judged = judgedTransaction();
    judged.doubleSpend(judged.pay());
    expect(judged.status).toBe('started');
    judged.pay();
    judged.mine();
    expect(judged.path()).toEqual(['started', 'pending', 'started', 'pending', 'confirmed', 'succeeded']);
  });
});

describe('settled (rule 19)', () => {
  test.each([
    ['BTC', 6],
    ['LTC', 12],
  ] as const)('%s: at %i confirmations and 24 hours after it succeeded, whichever is later', (currency, depth) => {
    const deepFirst = judgedTransaction({ currency });
    deepFirst.pay();
    deepFirst.mine(depth);
    deepFirst.wait(DAY - 1);
    expect([deepFirst.status, deepFirst.verdict.dueAtMs]).toEqual(['succeeded', deepFirst.now + 1]);
    deepFirst.wait(1);
    expect(deepFirst.status).toBe('settled');
    const dayFirst = judgedTransaction({ currency });
    dayFirst.pay();
    dayFirst.mine(depth - 1);
    dayFirst.wait(2 * DAY);
    expect(dayFirst.status).toBe('succeeded');
    dayFirst.mine();
    expect(dayFirst.status).toBe('settled');
  });

  test('every credited payment must be final, an extra one in suspense need not', () => {
    const judged = judgedTransaction({ settlementMs: 0 });
    judged.pay();
    judged.mine();
    judged.pay({ amount: HALF });
    judged.mineEmpty(5);
    judged.wait(SECOND);
    expect(judged.status).toBe('settled');
  });

  test('waits while a reorganisation has put the payment back, with its entry and status kept and one event', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine(6);
    judged.wait(DAY - MINUTE);
    judged.reorg(6);
    expect([judged.status, judged.announced(), judged.available()]).toEqual([
      'succeeded',
      ['transaction.reorged'],
      judged.amountDue,
    ]);
    judged.wait(HOUR);
    expect(judged.status).toBe('succeeded');
    judged.mine();
    expect(judged.announced()).toEqual(['transaction.reorged']);
    judged.mine(5);
    expect([judged.status, judged.books.entries.size]).toEqual(['settled', 1]);
  });

  test('waits while our node is down', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine(6);
    judged.node('down');
    judged.wait(2 * DAY);
    expect(judged.status).toBe('succeeded');
    judged.node('up');
    expect(judged.status).toBe('settled');
  });
});

test('a payment is noticed however long the node was away: late payments find their owner', () => {
  const judged = judgedTransaction({ latePolicy: 'review' });
  judged.wait(400 * DAY);
  judged.pay();
  judged.mine();
  expect([judged.path(), judged.suspense()]).toEqual([['started', 'timedout', 'timedout_checked', 'review'], judged.amountDue]);
});

test('the time of a chain is never ahead of now: our own clock was set back since it was read', () => {
  const ahead = { chains: new Map([['BTC', { tipHeight: TIP, timeMs: WINDOW_END_MS + 4 * DAY }]] as const) };
  const unpaid = newCase([], { ...ahead, nowMs: WINDOW_END_MS - 1 });
  judge(unpaid);
  expect(unpaid.transaction.status).toBe('started');
  judge(Object.assign(unpaid, { nowMs: WINDOW_END_MS }));
  expect(unpaid.transaction.status).toBe('timedout');

  const gone = { state: 'gone', goneSinceMs: WINDOW_END_MS, classified: true, present: true, onTimeMinor: 1_000n } as const;
  const booked = newPayment(1, { ...gone, partKey: 'dep', credited: 1_000n, inAvailable: 1_000n });
  const paid = newCase([booked], { ...ahead, nowMs: WINDOW_END_MS + 10 * MINUTE - 1, transaction: { status: 'succeeded' } });
  judge(paid);
  expect([paid.transaction.status, booked.dueAtMs]).toEqual(['succeeded', WINDOW_END_MS + 10 * MINUTE]);
  judge(Object.assign(paid, { nowMs: WINDOW_END_MS + 10 * MINUTE }));
  expect(paid.transaction.status).toBe('review');

  const waiting = newCase([newPayment(1, gone)], {
    ...ahead,
    nowMs: WINDOW_END_MS + 3 * DAY - 1,
    transaction: { status: 'pending' },
  });
  judge(waiting);
  expect(waiting.transaction.status).toBe('pending');
  judge(Object.assign(waiting, { nowMs: WINDOW_END_MS + 3 * DAY }));
  expect(waiting.transaction.status).toBe('timedout');
});
