// Decides what has become of one transaction: applies the rules to the case until none of them changes anything, and says when to look
// again. Pure: the same facts always give the same verdict. The caller holds the transaction's row lock.
import type { PaymentMethod } from '../currency.ts';
import type { Case } from './case.ts';
import { noticePayments } from './notice.ts';
import {
  countingPayments,
  dayAfterCreation,
  isAfterDay,
  isLive,
  nextTime,
  noteCounting,
  received,
  youngestCounting,
} from './payments.ts';
import { ofAll, PAYMENTS_IN_A_TURN } from './portion.ts';
import { endUnconfirmed, endWithLostPayments, holdBooked, noteEnded, releaseFinal } from './refunds.ts';
import { nextHeight } from './required-depth.ts';
import {
  acceptLate,
  announceReorged,
  book,
  closeAfterLookup,
  closeWindow,
  confirm,
  declineShort,
  moveToSuspense,
  ownTime,
  type Rule,
  returnFromLoss,
  reviewAfterCancel,
  settle,
  takeBackLost,
  withdraw,
} from './rules.ts';
import { GRACE_MS } from './times.ts';

/** In the order in which they are tried: losses before new payments, new payments before conditions that wait. */
const RULES: readonly Rule[] = [
  noteEnded,
  takeBackLost,
  ofAll(endWithLostPayments),
  noticePayments,
  announceReorged,
  ofAll(confirm),
  ofAll(book),
  moveToSuspense,
  ...[
    withdraw,
    declineShort,
    closeWindow,
    closeAfterLookup,
    reviewAfterCancel,
    acceptLate,
    returnFromLoss,
    settle,
    endUnconfirmed,
    holdBooked,
    releaseFinal,
  ].map(ofAll),
];
const MAX_ROUNDS = 10_000;
const RATE_RETRY_MS = 5_000;

export type Verdict = {
  readonly receivedMinor: bigint;
  /** The payment from which confirmations are counted; null = 0. */
  readonly youngest: { readonly height: number; readonly currency: PaymentMethod } | null;
  /** On the chain's own clock; null = only an event makes the transaction due. */
  readonly dueAtMs: number | null;
};

/**
 * Applies every rule until nothing changes. Changes the case in place; the store writes its steps. When `it.more` is true afterwards, some
 * payments are left for another verdict.
 */
export function judge(it: Case): Verdict {
  const judging = judgeInTurns(it);
  for (;;) {
    const turn = judging.next();
    if (turn.done) return turn.value;
  }
}

/** Like {@link judge}, but yields between turns so that the caller can let other work run: a transaction of very many payments takes long. */
export function* judgeInTurns(it: Case): Generator<undefined, Verdict> {
  it.more = false;
  for (let round = 0; yield* applyOne(it); round++) {
    if (round === MAX_ROUNDS) throw new Error(`the rules of ${it.transaction.id} never end`);
  }
  const counting = countingPayments(it);
  noteCounting(it, counting);
  for (const [n, payment] of it.payments.entries()) {
    payment.dueHeight = nextHeight(it, payment);
    payment.dueAtMs = nextTime(it, payment);
    if (n % PAYMENTS_IN_A_TURN === 0) yield;
  }
  if (it.transaction.status !== 'timedout') it.transaction.lookupWanted = false;
  return { receivedMinor: received(it), youngest: youngestCounting(it, counting), dueAtMs: nextDue(it) };
}

/** Applies the first rule that changes something; returns whether there was one. */
function* applyOne(it: Case): Generator<undefined, boolean> {
  for (const rule of RULES) {
    const applied = rule(it);
    if (typeof applied === 'boolean' ? applied : yield* applied) return true;
    if (it.payments.length > PAYMENTS_IN_A_TURN) yield;
  }
  return false;
}

function nextDue(it: Case): number | null {
  const { transaction } = it;
  const times: number[] = [];
  switch (transaction.status) {
    case 'started':
      times.push(transaction.windowEndsAtMs);
      break;
    case 'pending':
      // rule 6 begins once the 60 s have passed, so one millisecond later
      times.push(transaction.windowEndsAtMs, transaction.windowEndsAtMs + GRACE_MS + 1);
      break;
    case 'timedout':
      if (!transaction.lookupWanted) times.push(dayAfterCreation(transaction));
      break;
    case 'succeeded':
      if (transaction.succeededAtMs !== null) times.push(transaction.succeededAtMs + it.settlementMs);
      break;
    default:
      break;
  }
  const now = ownTime(it);
  const waitsForRate =
    it.payments.some((payment) => isLive(payment) && payment.valueRate === null) ||
    (transaction.status === 'pending' &&
      [...it.blocks.values()].some((block) => isAfterDay(transaction, block) && block.rate === null));
  if (waitsForRate) times.push(now + RATE_RETRY_MS);
  const ahead = times.filter((time) => time > now);
  return ahead.length === 0 ? null : Math.min(...ahead);
}
