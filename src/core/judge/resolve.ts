// The merchant's or the operator's word on one transaction: cancel (rule 20), accept (12), decline (14), and the excess of one that is paid. Each checks
// what the rule asks for and refuses by name; the caller has let the judge decide everything that was due before.
import { Refusal } from '../refusal.ts';
import { BEFORE_BOOKING, transition } from '../transaction-states.ts';
import type { Case, Coin } from './case.ts';
import { confirmationsOf, isBooked, isLive, isRight, suspenseOf } from './coins.ts';
import { acceptSuspense } from './postings.ts';
import { suspenseReached } from './required.ts';
import { announceRest, isDisputed, waitsForBooking } from './rules.ts';
import { happen } from './steps.ts';

/** Cancels a transaction that waits for payment, or whose payments have no confirmation yet. Cancelled already: nothing changes. */
export function cancel(it: Case): void {
  const { transaction } = it;
  if (transaction.word === 'cancelled' && (transaction.status === 'cancelled' || transaction.status === 'review')) return;
  const confirmed = it.coins.some((coin) => isRight(it, coin) && isLive(coin) && confirmationsOf(it, coin) > 0);
  if (confirmed || !happen(it, 'cancelled_by_merchant')) {
    throw new Refusal('transaction_not_cancellable', {
      message: `The transaction is ${transaction.status}${confirmed && transaction.status === 'pending' ? ' and its payment has confirmations' : ''}; only a started one, or a pending one without confirmations, can be cancelled.`,
    });
  }
  transaction.word = 'cancelled';
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
 * Accepts all coins in suspense: from review or declined to confirmed and succeeded. A payment that does not have its R yet keeps nobody from
 * that: it comes to suspense later (rule 21).
 */
export function accept(it: Case, by: Speaker = 'merchant'): void {
  const { transaction } = it;
  if (transaction.status !== 'review' && transaction.status !== 'declined') {
    throw notResolvable(`The transaction is ${transaction.status}; only one in review or declined can be accepted.`);
  }
  refuseWhileRefunding(it);
  if (it.coins.some((coin) => waitsForBooking(it, coin)) || !suspenseReached(it))
    throw notResolvable('A payment of this transaction does not have the confirmations that its value needs yet.');
  if (suspenseOf(it.coins) === 0n) throw notResolvable(nothingInSuspense(it));
  refuseWhileDisputed(it);
  transaction.word = 'accepted';
  happen(it, 'resolved_accept', by === 'operator' ? 'accepted by the operator' : undefined);
  acceptSuspense(it, it.coins);
  happen(it, 'booked');
  announceRest(it);
}

function nothingInSuspense(it: Case): string {
  return it.coins.some((coin) => isLive(coin) && !isBooked(coin))
    ? 'No payment of this transaction has the confirmations that its value needs yet.'
    : 'Nothing of this transaction lies in suspense.';
}

/** Refuses what is in review: it stays in suspense. */
export function decline(it: Case, by: Speaker = 'merchant'): void {
  if (it.transaction.status !== 'review') {
    throw notResolvable(`The transaction is ${it.transaction.status}; only one in review can be declined.`);
  }
  refuseWhileRefunding(it);
  happen(it, 'resolved_decline', by === 'operator' ? 'refused by the operator' : undefined);
  it.transaction.word = 'refused';
}

/** Accepts only what lies in suspense (an excess, another coin, a second payment); the status stays. */
export function acceptExcess(it: Case): void {
  const { transaction } = it;
  if (BEFORE_BOOKING.has(transaction.status)) {
    throw notResolvable(`The transaction is ${transaction.status}; an excess can be resolved once it is booked.`);
  }
  refuseWhileRefunding(it);
  const coins: Coin[] = it.coins.filter((coin) => coin.inSuspense > 0n);
  if (coins.length === 0) throw notResolvable('Nothing of this transaction lies in suspense.');
  if (!suspenseReached(it)) {
    throw notResolvable('The excess does not have the confirmations that its value needs yet.');
  }
  refuseWhileDisputed(it);
  transaction.sequence += 1;
  acceptSuspense(it, coins);
}

/** What every reimbursement asks of the transaction, before anything else (rule 13, and the excess). */
export function refuseUnreimbursable(it: Case, part: 'excess' | null): void {
  const { status } = it.transaction;
  if (part === 'excess' ? BEFORE_BOOKING.has(status) : transition(status, 'reimbursement_confirmed') === null) {
    throw notResolvable(`The transaction is ${status}; ${part === 'excess' ? 'its excess' : 'it'} cannot be reimbursed.`);
  }
  refuseWhileRefunding(it);
}
