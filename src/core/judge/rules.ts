// The rules that wait for a condition: enough confirmed and booked (4, 5, 16, 24), short (6), the window (7, 8), in flight after a cancel
// (9), accepted by policy (11), withdrawn (15), lost and back (17), payments to suspense, settled (19). Each returns whether it changed
// something, or does it in turns.
import { least, minus, plus, sum } from '../money.ts';
import { isWorth } from '../rate.ts';
import { BEFORE_BOOKING } from '../transaction-states.ts';
import type { Case, Payment } from './case.ts';
import { deepEnough, deepTooLate } from './late-block.ts';
import { announceExtra, paymentData, review } from './notice.ts';
import {
  countingMinor,
  dayAfterCreation,
  inQuotedCurrency,
  isBooked,
  isLive,
  isLost,
  isWithdrawn,
  lateCounts,
  lateMinor,
  presentInQuotedCurrency,
  sufficientAmount,
  suspenseOf,
  tolerance,
  toleranceUsd,
  valued,
} from './payments.ts';
import { PAYMENTS_IN_A_TURN, portion } from './portion.ts';
import { acceptSuspense, bookDeposit, bookToSuspense, isTheMerchants, reverseDeposit } from './postings.ts';
import {
  isDisputed,
  isFinal,
  lateReached,
  reachesSuspense,
  reachesTransaction,
  suspenseReached,
  undisputed,
} from './required-depth.ts';
import { announce, applyEvent } from './steps.ts';
import { GRACE_MS } from './times.ts';

export type Rule = (it: Case) => boolean | Generator<undefined, boolean>;

/** Booked payments that are lost: reversed once, from where their units are now (rule 17; in other statuses the status stays). */
export const takeBackLost: Rule = (it) => {
  const lost = it.payments.filter((payment) => isLost(it, payment));
  const taken = portion(it, lost);
  for (const payment of taken) {
    const wasTheMerchants = isTheMerchants(it, payment);
    reverseDeposit(it, payment);
    payment.present = false;
    if (wasTheMerchants && applyEvent(it, 'booked_payment_lost')) it.transaction.reviewCause = 'loss';
  }
  return taken.length > 0;
};

/** A booked payment that a reorganisation moved to the mempool or to another block keeps its entry; an event announces it once. */
export const announceReorged: Rule = (it) => {
  const moved = portion(
    it,
    it.payments.filter((payment) => isBooked(payment) && isLive(payment) && payment.judgedBlockHash !== payment.blockHash),
  );
  for (const payment of moved) {
    const known = payment.judgedBlockHash !== null;
    payment.judgedBlockHash = payment.blockHash;
    if (known) announce(it, 'transaction.reorged', paymentData(payment));
  }
  return moved.length > 0;
};

/** Payments that are not part of the price are booked to suspense at the required depth of their own value. */
export const moveToSuspense: Rule = (it) => {
  const before = BEFORE_BOOKING.has(it.transaction.status);
  const waiting = it.payments.filter((payment) => waitsForBooking(it, payment) && (!inQuotedCurrency(it, payment) || !before));
  const payments = portion(it, undisputed(it, waiting, reachesSuspense));
  for (const payment of payments) bookToSuspense(it, payment);
  return payments.length > 0;
};

/** A payment that is deep enough for suspense but is not booked, because our nodes do not agree about its block. */
export function waitsForBooking(it: Case, payment: Payment): boolean {
  return payment.present && isLive(payment) && !isBooked(payment) && reachesSuspense(it, payment);
}

/** Rules 4 and 24: amount due − tolerance has the required depth. */
export function* confirm(it: Case): Generator<undefined, boolean> {
  if (it.transaction.status !== 'pending') return false;
  const deep = deepEnough(it);
  if (deep === null) return false;
  yield;
  let isLateDeep: boolean | null = null;
  const reaches = (at: Case, payment: Payment): boolean => {
    if (!reachesTransaction(at, payment) || !deep.late || lateMinor(payment) === 0n) return reachesTransaction(at, payment);
    isLateDeep ??= lateReached(at, deep.payments);
    return isLateDeep;
  };
  if (undisputed(it, deep.payments, reaches).length < deep.payments.length) return false;
  yield;
  const late = deepTooLate(it, deep);
  if (late === null) return applyEvent(it, 'enough_confirmed');
  if (late.rate === null) return false;
  const { currency, usdMinor } = it.transaction;
  const part = { minor: late.total, rate: late.rate };
  if (isWorth([part], currency, { usdMinor }, toleranceUsd(it.transaction))) return applyEvent(it, 'enough_confirmed');
  // valued at the rate of that date: rule 11 must not accept them at the price of their arrival
  for (const payment of late.payments) payment.valueRate = late.rate;
  return review(it, 'confirmed_too_late', 'late');
}

/** Rule 5, in the same verdict as rule 4. If a confirmed transaction is found whose payments are below their required depth: rule 16. */
export function* book(it: Case): Generator<undefined, boolean> {
  if (it.transaction.status !== 'confirmed') return false;
  const deep = deepEnough(it);
  if (deep === null) return applyEvent(it, 'reorged_below');
  let left = deep.total <= plus(it.transaction.amountDue, tolerance(it.transaction)) ? deep.total : it.transaction.amountDue;
  let credited = 0n;
  const above: Payment[] = [];
  for (const [n, payment] of deep.payments.entries()) {
    if (n % PAYMENTS_IN_A_TURN === PAYMENTS_IN_A_TURN - 1) yield;
    const credit = least(countingMinor(payment, deep.late), left);
    // what exceeds the price goes to suspense, with the next verdict if this one has no room for it
    if (credit === 0n && payment.owed === 0n && reachesSuspense(it, payment) && portion(it, [payment]).length === 0) {
      above.push(payment);
      continue;
    }
    left = minus(left, credit);
    bookDeposit(it, payment, credit, credited);
    credited = plus(credited, credit);
  }
  applyEvent(it, 'booked');
  announceRest(it, new Set(above));
  return true;
}

/** Payments that are there but not booked when a transaction has succeeded are extra from then on (rule 21). */
export function announceRest(it: Case, except: ReadonlySet<Payment> = new Set()): void {
  for (const payment of presentInQuotedCurrency(it)) if (!isBooked(payment) && !except.has(payment)) announceExtra(it, payment);
}

/**
 * Rule 6: the window and its 60 s have passed on the chain's own clock, every payment that is there has its required depth, and it is not
 * enough.
 */
export const declineShort: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'pending' || ownTime(it) <= transaction.windowEndsAtMs + GRACE_MS) return false;
  const waiting = it.payments.filter(
    (payment) => inQuotedCurrency(it, payment) && payment.classified && !isWithdrawn(it, payment),
  );
  if (waiting.length === 0 || !waiting.every((payment) => reachesTransaction(it, payment))) return false;
  const late = lateCounts(it, waiting);
  if (late === null) return false;
  if (sum(waiting.map((payment) => countingMinor(payment, late))) >= sufficientAmount(transaction)) return false;
  return applyEvent(it, 'short');
};

/** Rule 15: every payment is double-spent, replaced, or 72 hours out of the mempool. */
export const withdraw: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'pending') return false;
  const payments = it.payments.filter((payment) => inQuotedCurrency(it, payment) && payment.classified);
  if (payments.length === 0 || payments.some((payment) => !isWithdrawn(it, payment))) return false;
  return applyEvent(it, it.nowMs < transaction.windowEndsAtMs ? 'all_gone_in_window' : 'all_gone');
};

/** Rule 7. */
export const closeWindow: Rule = (it) =>
  it.transaction.status === 'started' && ownTime(it) >= it.transaction.windowEndsAtMs && applyEvent(it, 'window_passed');

/** Rule 8: 24 hours after creation, once the chain was searched again. */
export const closeAfterLookup: Rule = (it) => {
  const { transaction } = it;
  const dayAfterMs = dayAfterCreation(transaction);
  if (transaction.status !== 'timedout' || ownTime(it) < dayAfterMs) return false;
  if (transaction.lookedUpAtMs !== null && transaction.lookedUpAtMs >= dayAfterMs) return applyEvent(it, 'nothing_on_chain');
  if (transaction.lookupWanted) return false;
  transaction.lookupWanted = true;
  return true;
};

/** Rule 9 for payments that were in flight when the merchant cancelled. */
export const reviewAfterCancel: Rule = (it) =>
  it.transaction.status === 'cancelled' && presentInQuotedCurrency(it).length > 0 && review(it, 'paid_late', 'late');

/** Rule 11: the merchant's policy accepts a late payment, at the rate of its arrival; never against a decision of the merchant. */
export const acceptLate: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'review' || transaction.reviewCause !== 'late' || transaction.latePolicy !== 'accept') return false;
  if (
    transaction.acceptedOnlyByHand ||
    transaction.merchantDecision === 'cancelled' ||
    transaction.merchantDecision === 'refused' ||
    it.refunds.length > 0
  )
    return false;
  // a payment that is not deep enough waits by itself (rule 21): a stranger's unconfirmed payment must not hold up the decision
  const payments = presentInQuotedCurrency(it).filter((payment) => isBooked(payment) && reachesTransaction(it, payment));
  // everything in suspense is credited, so all of it must still be there and deep
  if (payments.length === 0 || !suspenseReached(it)) return false;
  // what has gone back to the customer pays for nothing
  const parts = valued(payments, (payment) => plus(payment.inAvailable, payment.inSuspense));
  if (parts === null || isDisputed(it) || suspenseOf(payments) === 0n) return false;
  if (!isWorth(parts, transaction.currency, { usdMinor: transaction.usdMinor }, toleranceUsd(transaction))) return false;
  if (!applyEvent(it, 'late_accepted')) return false;
  acceptSuspense(it, it.payments);
  applyEvent(it, 'booked');
  announceRest(it);
  return true;
};

/** Rule 17's way back: the credited payments are enough again, or all lost ones are back. */
export const returnFromLoss: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'review' || transaction.reviewCause !== 'loss' || it.refunds.length > 0) return false;
  if (it.payments.some((payment) => waitsForBooking(it, payment))) return false;
  if (sum(it.payments.map((payment) => payment.inAvailable)) === 0n) return false;
  const right = it.payments.filter((payment) => inQuotedCurrency(it, payment));
  const credited = sum(right.map((payment) => payment.inAvailable));
  // what is in suspense was never the merchant's: with it the payments may be below the price, unless the merchant has accepted that before
  const allBack =
    it.payments.every((payment) => !payment.wasLost) && (suspenseOf(right) === 0n || transaction.merchantDecision === 'accepted');
  if (credited < sufficientAmount(transaction) && !allBack) return false;
  if (!applyEvent(it, 'lost_payment_back')) return false;
  return applyEvent(it, 'booked');
};

/** Rule 19: every credited payment is final, no reimbursement is open, and the settlement time has passed since it succeeded. */
export const settle: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'succeeded' || transaction.succeededAtMs === null || it.refunds.length > 0) return false;
  if (ownTime(it) < transaction.succeededAtMs + it.settlementMs) return false;
  if (it.payments.some((payment) => payment.inAvailable > 0n && !isFinal(it, payment))) return false;
  return applyEvent(it, 'final');
};

/**
 * The clock of the transaction's chain: it stands still while the watcher has not caught up. Never ahead of now: our own clock may have
 * been set back since the chain was read.
 */
export function ownTime(it: Case): number {
  return Math.min(it.chains.get(it.transaction.currency)?.timeMs ?? Number.NEGATIVE_INFINITY, it.nowMs);
}
