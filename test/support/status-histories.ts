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

/** A judged in the status of that name, reached by the rules. */
export const STATUS_HISTORIES: Record<string, (options?: JudgedTransactionOptions) => JudgedTransaction> = {
  started: (options) => judgedTransaction(options),
  pending: (options) => {
    const judged = judgedTransaction(options);
    judged.pay({ amount: HALF });
    return judged;
  },
  timedout: (options) => {
    const judged = judgedTransaction(options);
    judged.until(W + 2 * MINUTE);
    return judged;
  },
  timedout_checked: (options) => {
    const judged = judgedTransaction(options);
    judged.wait(DAY);
    return judged;
  },
  cancelled: (options) => {
    const judged = judgedTransaction(options);
    judged.cancel();
    return judged;
  },
  declined: (options) => {
    const judged = judgedTransaction(options);
    judged.pay({ amount: HALF });
    judged.mine();
    judged.afterGrace();
    return judged;
  },
  review: (options) => {
    const judged = judgedTransaction({ latePolicy: 'review', ...options });
    judged.until(W + 2 * MINUTE);
    judged.pay({ amount: HALF });
    judged.mine();
    return judged;
  },
  succeeded: (options) => {
    const judged = judgedTransaction(options);
    judged.pay();
    judged.mine();
    return judged;
  },
  settled: (options) => {
    const judged = judgedTransaction({ settlementMs: 0, ...options });
    judged.pay();
    judged.mine(6);
    judged.wait(SECOND);
    return judged;
  },
  reimbursed: (options) => {
    const judged = STATUS_HISTORIES.settled!(options);
    judged.openRefund();
    judged.finishRefund();
    return judged;
  },
};
