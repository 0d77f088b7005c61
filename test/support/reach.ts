// For each status a history that leads to it, for tests of rules in every status.
import {
  DAY,
  type JudgedTransaction,
  type JudgedTransactionOptions,
  judgedTransaction,
  MINUTE,
  SECOND,
  W,
} from './judged-transaction.ts';

const HALF = 25_000n;

/** A world in the status of that name, reached by the rules. */
export const REACH: Record<string, (options?: JudgedTransactionOptions) => JudgedTransaction> = {
  started: (options) => judgedTransaction(options),
  pending: (options) => {
    const world = judgedTransaction(options);
    world.pay({ amount: HALF });
    return world;
  },
  timedout: (options) => {
    const world = judgedTransaction(options);
    world.until(W + 2 * MINUTE);
    return world;
  },
  timedout_checked: (options) => {
    const world = judgedTransaction(options);
    world.wait(DAY);
    return world;
  },
  cancelled: (options) => {
    const world = judgedTransaction(options);
    world.cancel();
    return world;
  },
  declined: (options) => {
    const world = judgedTransaction(options);
    world.pay({ amount: HALF });
    world.mine();
    world.afterGrace();
    return world;
  },
  review: (options) => {
    const world = judgedTransaction({ latePolicy: 'review', ...options });
    world.until(W + 2 * MINUTE);
    world.pay({ amount: HALF });
    world.mine();
    return world;
  },
  succeeded: (options) => {
    const world = judgedTransaction(options);
    world.pay();
    world.mine();
    return world;
  },
  settled: (options) => {
    const world = judgedTransaction({ settlementMs: 0, ...options });
    world.pay();
    world.mine(6);
    world.wait(SECOND);
    return world;
  },
  reimbursed: (options) => {
    const world = REACH.settled!(options);
    world.openRefund();
    world.finishRefund();
    return world;
  },
};
