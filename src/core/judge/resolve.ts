// The merchant's or the operator's decision on one transaction: cancel (rule 20), accept (rule 12), decline (rule 14), and the excess of a
// paid one; reimbursements are in refunds.ts. Each checks the rule's conditions and refuses with its own error code; the caller must have judged everything that was due
// before.
import { Refusal } from '../refusal.ts';
import { BEFORE_BOOKING, type TransactionStatus } from '../transaction-states.ts';
import type { Case, Payment } from './case.ts';
import { confirmationsOf, inQuotedCurrency, isBooked, isLive, suspenseOf } from './payments.ts';
import { acceptSuspense } from './postings.ts';
import { refuseWhileRefunding } from './refunds.ts';
import { isDisputed, suspenseReached } from './required-depth.ts';
import { announceRest, waitsForBooking } from './rules.ts';
import { applyEvent } from './steps.ts';

/** Cancels a transaction that waits for payment, or whose payments have no confirmation yet. A second cancel changes nothing. */
export function cancel(it: Case): void {
  const { transaction } = it;
  if (transaction.status === 'cancelled') return;
  const confirmed = it.payments.some(
    (payment) => inQuotedCurrency(it, payment) && isLive(payment) && confirmationsOf(it, payment) > 0,
  );
  if (confirmed || !applyEvent(it, 'cancelled_by_merchant')) throw notCancellable(transaction.status, confirmed);
  transaction.merchantDecision = 'cancelled';
}

function notCancellable(status: TransactionStatus, confirmed: boolean): Refusal {
  return new Refusal('transaction_not_cancellable', {
    message: `The transaction is ${status}${confirmed && status === 'pending' ? ' and its payment has confirmations' : ''}; only a started one, or a pending one without confirmations, can be cancelled.`,
  });
}

/** What a caller is shown of a transaction: enough to refuse most decisions without its payments. */
type Shown = { readonly status: TransactionStatus; readonly confirmations: number };

/** Refuses what {@link cancel} refuses, by status and confirmations alone. */
export function refuseCancel({ status, confirmations }: Shown): void {
  if (status === 'cancelled' || status === 'started' || (status === 'pending' && confirmations === 0)) return;
  throw notCancellable(status, confirmations > 0);
}

function notResolvable(message: string): Refusal {
  return new Refusal('not_resolvable', { message });
}

function refuseWhileDisputed(it: Case): void {
  if (isDisputed(it))
    throw notResolvable(
      'The nodes of this chain contradict each other, or only one has these blocks: try again when they agree.',
    );
}

/** Who decided: the history shows it. */
export type Speaker = 'merchant' | 'operator';

/**
 * Accepts all payments in suspense: from review or declined to confirmed and succeeded. A payment without its required depth does not hold
 * this up: it goes to suspense later (rule 21).
 */
export function accept(it: Case, by: Speaker = 'merchant'): void {
  const { transaction } = it;
  refuseAccept(transaction);
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

/** Refuses an accept by the status. */
export function refuseAccept({ status }: Pick<Shown, 'status'>): void {
  if (status !== 'review' && status !== 'declined')
    throw notResolvable(`The transaction is ${status}; only one in review or declined can be accepted.`);
}

function nothingInSuspense(it: Case): string {
  return it.payments.some((payment) => isLive(payment) && !isBooked(payment))
    ? 'No payment of this transaction has the confirmations that its value needs yet.'
    : 'Nothing of this transaction lies in suspense.';
}

/** Refuses a transaction in review: its payments stay in suspense. */
export function decline(it: Case, by: Speaker = 'merchant'): void {
  refuseDecline(it.transaction);
  refuseWhileRefunding(it);
  applyEvent(it, 'resolved_decline', by === 'operator' ? 'refused by the operator' : undefined);
  it.transaction.merchantDecision = 'refused';
}

/** Refuses a decline by the status. */
export function refuseDecline({ status }: Pick<Shown, 'status'>): void {
  if (status !== 'review') throw notResolvable(`The transaction is ${status}; only one in review can be declined.`);
}

/** Accepts only what is in suspense (an excess, another currency, a second payment); the status stays. */
export function acceptExcess(it: Case): void {
  const { transaction } = it;
  refuseExcess(transaction);
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

/** Refuses an accept of the excess by the status. */
export function refuseExcess({ status }: Pick<Shown, 'status'>): void {
  if (BEFORE_BOOKING.has(status))
    throw notResolvable(`The transaction is ${status}; an excess can be resolved once it is booked.`);
}
