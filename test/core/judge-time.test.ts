// What only time causes: the window, the day after, withdrawn payments, settlement (rules 7, 8, 15, 19); and that none of it happens while
// our own node is behind. The test setup also checks that the judge is woken whenever a rule applies.
import { describe, expect, test } from 'vitest';
import type { Case } from '../../src/core/judge/case.ts';
import { judge } from '../../src/core/judge/judge.ts';
import { DAY, HOUR, judgedTransaction, MINUTE, SECOND, T0, W } from '../support/judged-transaction.ts';
import { newCase, newCoin, TIP, WINDOW_END_MS } from '../support/one-case.ts';

const HALF = 25_000n;

describe('the window (rules 7 and 8)', () => {
  test('times out at W and not before', () => {
    const world = judgedTransaction();
    world.until(W - 1);
    expect([world.status, world.verdict.dueAtMs]).toEqual(['started', W]);
    world.until(W);
    expect([world.path(), world.rules()]).toEqual([['started', 'timedout'], [7]]);
  });

  test('a day after creation the chain is looked up once more, and not before', () => {
    const world = judgedTransaction();
    world.until(T0 + DAY - 1);
    expect([world.status, world.verdict.dueAtMs]).toEqual(['timedout', T0 + DAY]);
    expect(world.transaction.lookedUpAtMs).toBeNull();
    world.until(T0 + DAY);
    expect([world.rules(), world.transaction.lookedUpAtMs]).toEqual([[7, 8], T0 + DAY]);
  });

  test('while the node is down nothing times out; when it is back and nothing was paid, it does', () => {
    const world = judgedTransaction();
    world.node('down');
    world.until(T0 + 3 * DAY);
    expect(world.status).toBe('started');
    world.node('up');
    expect(world.status).toBe('timedout_checked');
  });

  test('a timed out one waits for its look-up while the node is down', () => {
    const world = judgedTransaction();
    world.until(W);
    world.node('down');
    world.until(T0 + 3 * DAY);
    expect([world.status, world.transaction.lookupWanted]).toEqual(['timedout', false]);
    world.node('up');
    expect(world.status).toBe('timedout_checked');
  });

  test('another chain’s node does not hold it up, nor speed it', () => {
    const world = judgedTransaction();
    world.node('down', 'LTC');
    world.until(W);
    expect(world.status).toBe('timedout');
  });
});

describe('withdrawn (rule 15)', () => {
  test('only when every payment is dead', () => {
    const world = judgedTransaction();
    const one = world.pay({ amount: HALF });
    const two = world.pay({ amount: HALF });
    world.doubleSpend(one);
    expect(world.status).toBe('pending');
    world.evict(two);
    world.wait(71 * HOUR);
    expect(world.status).toBe('pending');
    world.wait(HOUR);
    expect(world.rules().slice(0, 2)).toEqual([2, 15]);
  });

  test('72 hours out of the mempool, not a second less; back in between it counts anew', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.evict(tx);
    world.wait(72 * HOUR - SECOND);
    world.resend(tx);
    expect(world.status).toBe('pending');
    world.evict(tx);
    world.wait(72 * HOUR - SECOND);
    expect(world.status).toBe('pending');
    world.wait(SECOND);
    expect(world.status).toBe('timedout_checked');
  });

  test('after the window it is timed out, also when the watcher has not told yet how far it is', () => {
    const world = judgedTransaction();
    world.pay();
    world.node('down');
    world.until(W + HOUR);
    const it: Case = {
      transaction: { ...world.transaction },
      payments: world.payments.map((payment) => ({
        ...payment,
        state: 'conflicted',
        conflictTxid: 'rival',
        goneSinceMs: world.now,
      })),
      nowMs: world.now,
      chains: new Map([['BTC', world.chain().view]]),
      blocks: new Map(),
      feeBps: 0,
      settlementMs: DAY,
      balances: null,
      refundOpen: false,
      steps: [],
    };
    judge(it);
    expect([it.steps.length, it.transaction.status]).toEqual([1, 'timedout']);
  });

  test('while it is out it shows nothing received, and still waits', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.evict(tx);
    expect([world.status, world.verdict.receivedMinor, world.verdict.youngest]).toEqual(['pending', 0n, null]);
    expect(world.verdict.dueAtMs).not.toBeNull();
  });

  test('the 72 hours do not pass while our node is down', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.evict(tx);
    world.wait(HOUR);
    world.node('down');
    world.wait(100 * HOUR);
    expect(world.status).toBe('pending');
    world.resend(tx);
    world.node('up');
    expect(world.status).toBe('pending');
  });

  test('before W the transaction waits for another payment', () => {
    const world = judgedTransaction();
    world.doubleSpend(world.pay());
    expect(world.status).toBe('started');
    world.pay();
    world.mine();
    expect(world.path()).toEqual(['started', 'pending', 'started', 'pending', 'confirmed', 'succeeded']);
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
    const world = judgedTransaction({ settlementMs: 0 });
    world.pay();
    world.mine();
    world.pay({ amount: HALF });
    world.mineEmpty(5);
    world.wait(SECOND);
    expect(world.status).toBe('settled');
  });

  test('waits while a reorganisation has put the payment back, with its entry and status kept and one event', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine(6);
    world.wait(DAY - MINUTE);
    world.reorg(6);
    expect([world.status, world.announced(), world.available()]).toEqual(['succeeded', ['transaction.reorged'], world.amountDue]);
    world.wait(HOUR);
    expect(world.status).toBe('succeeded');
    world.mine();
    expect(world.announced()).toEqual(['transaction.reorged']);
    world.mine(5);
    expect([world.status, world.books.entries.size]).toEqual(['settled', 1]);
  });

  test('waits while our node is down', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine(6);
    world.node('down');
    world.wait(2 * DAY);
    expect(world.status).toBe('succeeded');
    world.node('up');
    expect(world.status).toBe('settled');
  });
});

test('a payment is noticed however long the node was away: late payments find their owner', () => {
  const world = judgedTransaction({ latePolicy: 'review' });
  world.wait(400 * DAY);
  world.pay();
  world.mine();
  expect([world.path(), world.suspense()]).toEqual([['started', 'timedout', 'timedout_checked', 'review'], world.amountDue]);
});

test('the time of a chain is never ahead of now: our own clock was set back since it was read', () => {
  const ahead = { chains: new Map([['BTC', { tipHeight: TIP, timeMs: WINDOW_END_MS + 4 * DAY }]] as const) };
  const unpaid = newCase([], { ...ahead, nowMs: WINDOW_END_MS - 1 });
  judge(unpaid);
  expect(unpaid.transaction.status).toBe('started');
  judge(Object.assign(unpaid, { nowMs: WINDOW_END_MS }));
  expect(unpaid.transaction.status).toBe('timedout');

  const gone = { state: 'gone', goneSinceMs: WINDOW_END_MS, classified: true, present: true, onTimeMinor: 1_000n } as const;
  const booked = newCoin(1, { ...gone, depositEntryKey: 'dep', credited: 1_000n, inAvailable: 1_000n });
  const paid = newCase([booked], { ...ahead, nowMs: WINDOW_END_MS + 10 * MINUTE - 1, transaction: { status: 'succeeded' } });
  judge(paid);
  expect([paid.transaction.status, booked.dueAtMs]).toEqual(['succeeded', WINDOW_END_MS + 10 * MINUTE]);
  judge(Object.assign(paid, { nowMs: WINDOW_END_MS + 10 * MINUTE }));
  expect(paid.transaction.status).toBe('review');

  const waiting = newCase([newCoin(1, gone)], {
    ...ahead,
    nowMs: WINDOW_END_MS + 3 * DAY - 1,
    transaction: { status: 'pending' },
  });
  judge(waiting);
  expect(waiting.transaction.status).toBe('pending');
  judge(Object.assign(waiting, { nowMs: WINDOW_END_MS + 3 * DAY }));
  expect(waiting.transaction.status).toBe('timedout');
});
