// The merchant's or the operator's word on one transaction: cancel (rule 20), accept (12), decline (14), and the excess of one that is paid. Each checks
// what the rule asks for and refuses by name; the caller has let the judge decide everything that was due before.
import { Refusal } from '../refusal.ts';
import { BEFORE_BOOKING, transition } from '../transaction-states.ts';
import type { Case, Payment } from './case.ts';
import { confirmationsOf, inQuotedCurrency, isBooked, isLive, suspenseOf } from './payments.ts';
import { acceptSuspense } from './postings.ts';
import { suspenseReached } from './required.ts';
import { announceRest, isDisputed, waitsForBooking } from './rules.ts';
import { applyEvent } from './steps.ts';

/** Cancels a transaction that waits for payment, or whose payments have no confirmation yet. Cancelled already: nothing changes. */
export function cancel(it: Case): void {
  const { transaction } = it;
  if (transaction.merchantDecision === 'cancelled' && (transaction.status === 'cancelled' || transaction.status === 'review'))
    return;
  const confirmed = it.payments.some(
    (payment) => inQuotedCurrency(it, payment) && isLive(payment) && confirmationsOf(it, payment) > 0,
  );
  if (confirmed || !applyEvent(it, 'cancelled_by_merchant')) {
    throw new Refusal('transaction_not_cancellable', {
      message: `The transaction is ${transaction.status}${confirmed && transaction.status === 'pending' ? ' and its payment has confirmations' : ''}; only a started one, or a pending one without confirmations, can be cancelled.`,
    });
  }
  transaction.merchantDecision = 'cancelled';
}

function notResolvable(message: string): Refusal {
  return new Refusal('not_resolvable', { message });
}

function refuseWhileRefunding(it: Case): void {
  if (it.refundOpen) throw notResolvable('A reimbursement of this transaction is under way.');
}

function refuseWhileDisputed(it: Case): void {
  if (isDisputed(it)) throw notResolvable('The nodes of this chain contradict each other: try again when they agree.');
}

/** Whose word it is: the history says so. */
export type Speaker = 'merchant' | 'operator';

/**
 * Accepts all payments in suspense: from review or declined to confirmed and succeeded. A payment that does not have its R yet keeps nobody from
 * that: it comes to suspense later (rule 21).
 */
export function accept(it: Case, by: Speaker = 'merchant'): void {
  const { transaction } = it;
  if (transaction.status !== 'review' && transaction.status !== 'declined') {
    throw notResolvable(`The transaction is ${transaction.status}; only one in review or declined can be accepted.`);
  }
  refuseWhileRefunding(it);
  if (it.payments.some((payment) => waitsForBooking(it, payment)) || !suspenseReached(it))
    throw notResolvable('A payment of this transaction does not have the confirmations that its value needs yet.');
  if (suspenseOf(it.payments) === 0n) throw notResolvable(nothingInSuspense(it));
  refuseWhileDisputed(it);
  transaction.merchantDecision = 'accepted';
  applyEvent(it, 'resolved_accept', by === 'operator' ? 'accepted by the operator' : undefined);
  acceptSuspense(it, it.payments);
  applyEvent(it, 'booked');
  announceRest(it);
}

function nothingInSuspense(it: Case): string {
  return it.payments.some((payment) => isLive(payment) && !isBooked(payment))
    ? 'No payment of this transaction has the confirmations that its value needs yet.'
    : 'Nothing of this transaction lies in suspense.';
}

/** Refuses what is in review: it stays in suspense. */
export function decline(it: Case, by: Speaker = 'merchant'): void {
  if (it.transaction.status !== 'review') {
    throw notResolvable(`The transaction is ${it.transaction.status}; only one in review can be declined.`);
  }
  refuseWhileRefunding(it);
  applyEvent(it, 'resolved_decline', by === 'operator' ? 'refused by the operator' : undefined);
  it.transaction.merchantDecision = 'refused';
}

/** Accepts only what lies in suspense (an excess, another currency, a second payment); the status stays. */
export function acceptExcess(it: Case): void {
  const { transaction } = it;
  if (BEFORE_BOOKING.has(transaction.status)) {
    throw notResolvable(`The transaction is ${transaction.status}; an excess can be resolved once it is booked.`);
  }
  refuseWhileRefunding(it);
  const payments: Payment[] = it.payments.filter((payment) => payment.inSuspense > 0n);
  if (payments.length === 0) throw notResolvable('Nothing of this transaction lies in suspense.');
  if (!suspenseReached(it)) {
    throw notResolvable('The excess does not have the confirmations that its value needs yet.');
  }
  refuseWhileDisputed(it);
  transaction.sequence += 1;
  acceptSuspense(it, payments);
}

/** What every reimbursement asks of the transaction, before anything else (rule 13, and the excess). */
export function refuseUnreimbursable(it: Case, part: 'excess' | null): void {
  const { status } = it.transaction;
  if (part === 'excess' ? BEFORE_BOOKING.has(status) : transition(status, 'reimbursement_confirmed') === null) {
    throw notResolvable(`The transaction is ${status}; ${part === 'excess' ? 'its excess' : 'it'} cannot be reimbursed.`);
  }
  refuseWhileRefunding(it);
}
