// The life of a payout as one data table: status and step before, event, status and step after, what is posted and announced. Nothing else
// decides either. Only evidence ends a payout: a time-out is no event here.

export const PAYOUT_STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;
export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];
/** Announced without a change of status. */
export const PAYOUT_ANNOUNCEMENTS = ['payout.reorged', 'payout.returned'] as const;
/** How far the work is: `held` waits for its reason to end, `queued` for a batch (ach: a bank file), `batched` is in one. */
export type PayoutStep = 'held' | 'queued' | 'batched' | 'ended';
/** In the order in which held-reason.ts looks at them; `unknown_outcome` is no part of that order. */
export const HELD_REASONS = ['breaker', 'receivable', 'approval', 'not_final', 'cool_down', 'unknown_outcome'] as const;
export type HeldReason = (typeof HELD_REASONS)[number];

/**
 * How long a worker has what it works on (a batch, a bank file, a payment over Lightning); after that another one takes it over. One that is
 * only slow loses nothing: what it stores under an older epoch is refused, and whoever comes next gets the same bytes from the signer. Longer
 * than a request to the signer takes, and than the adapters wait for a bank; a Lightning node refuses what arrives after it.
 */
export const LEASE_MS = 20_000;

export type PayoutEvent =
  | 'requested'
  | 'requested_and_held'
  | 'hold_ended'
  | 'outcome_unknown'
  | 'held_again'
  | 'stopped'
  | 'needs_operator'
  | 'reserved'
  | 'reservation_given_up'
  | 'signed'
  | 'confirmed'
  | 'final'
  | 'cancelled'
  | 'signed_before_cancel'
  | 'payments_lost'
  | 'impossible'
  | 'resolved_paid'
  | 'resolved_failed'
  | 'found_paid'
  | 'displaced'
  | 'booked_here'
  | 'filed'
  | 'settled'
  | 'refused'
  | 'returned'
  | 'committed'
  | 'paid'
  | 'unpayable'
  | 'crowded'
  | 'invoice_expired';

/** Which entry an event posts; the recipes are in postings.ts. */
export type PayoutPosting =
  | 'hold'
  | 'hold_again'
  | 'release'
  | 'sign'
  | 'complete'
  | 'true_up'
  | 'give_back'
  | 'return'
  | 'hand_over';

export type PayoutTransition = {
  readonly from: readonly [PayoutStatus, PayoutStep] | null;
  readonly event: PayoutEvent;
  readonly to: readonly [PayoutStatus, PayoutStep];
  readonly posting: PayoutPosting | null;
  /** The text for the history; null where nothing is announced because the status stays. */
  readonly reason: string | null;
};

const row = (
  from: PayoutTransition['from'],
  event: PayoutEvent,
  to: PayoutTransition['to'],
  posting: PayoutPosting | null,
  reason: string | null,
): PayoutTransition => ({ from, event, to, posting, reason });

/** Every transition there is. */
export const PAYOUT_TRANSITIONS: readonly PayoutTransition[] = [
  row(null, 'requested', ['processing', 'queued'], 'hold', 'requested'),
  row(null, 'requested_and_held', ['pending', 'held'], 'hold', 'requested, and held'),
  row(['pending', 'held'], 'hold_ended', ['processing', 'queued'], null, 'nothing holds it any more'),
  row(['pending', 'held'], 'cancelled', ['failed', 'ended'], 'release', 'cancelled by the merchant'),
  // cancelled in a copy of the database that did not know of the signature
  row(
    ['failed', 'ended'],
    'signed_before_cancel',
    ['processing', 'queued'],
    'hold_again',
    'it was signed before it was cancelled',
  ),
  // a reimbursement only
  row(['pending', 'held'], 'payments_lost', ['failed', 'ended'], 'release', 'its payments were lost'),
  row(['processing', 'queued'], 'payments_lost', ['failed', 'ended'], 'release', 'its payments were lost'),
  // a person was asked about it, and it had taken nothing yet
  row(['processing', 'held'], 'payments_lost', ['failed', 'ended'], 'release', 'its payments were lost'),
  row(['processing', 'queued'], 'held_again', ['processing', 'held'], null, null),
  row(['processing', 'held'], 'hold_ended', ['processing', 'queued'], null, null),
  // nothing is signed for it: it can be cancelled again
  row(['processing', 'queued'], 'stopped', ['pending', 'held'], null, 'payouts are stopped'),
  row(['processing', 'queued'], 'needs_operator', ['pending', 'held'], null, 'it waits for the operator'),
  // a transaction that nobody here knows pays it, or may do so
  row(['pending', 'held'], 'outcome_unknown', ['processing', 'held'], null, 'it may have been paid already'),
  row(['processing', 'queued'], 'outcome_unknown', ['processing', 'held'], null, null),
  row(['processing', 'held'], 'outcome_unknown', ['processing', 'held'], null, null),
  row(['processing', 'queued'], 'reserved', ['processing', 'batched'], null, null),
  row(['processing', 'batched'], 'reservation_given_up', ['processing', 'queued'], null, null),
  // once for each transaction that is signed: a replacement posts the difference to the dearest before it
  row(['processing', 'batched'], 'signed', ['processing', 'batched'], 'sign', null),
  row(['processing', 'batched'], 'confirmed', ['completed', 'ended'], 'complete', 'confirmed on the chain'),
  row(['processing', 'batched'], 'impossible', ['failed', 'ended'], 'give_back', 'it can no longer be paid'),
  // an operator's word, with evidence, on one whose outcome nobody can find out
  row(['processing', 'held'], 'resolved_paid', ['completed', 'ended'], 'complete', 'an operator found it paid'),
  row(['processing', 'held'], 'resolved_failed', ['failed', 'ended'], 'give_back', 'an operator found it unpaid'),
  // decided by hand before what had paid it was known
  row(['failed', 'ended'], 'found_paid', ['processing', 'queued'], 'hold_again', 'it was found paid after all'),
  row(['completed', 'ended'], 'final', ['completed', 'ended'], 'true_up', null),
  row(['completed', 'ended'], 'displaced', ['failed', 'ended'], 'return', 'another transaction took its place for good'),
  // to a transaction of another merchant here
  row(['processing', 'queued'], 'booked_here', ['completed', 'ended'], 'complete', 'booked to the transaction that it pays'),
  // ach: in a bank file, which is stored before the bank gets it
  row(['processing', 'queued'], 'filed', ['processing', 'batched'], 'hand_over', null),
  row(['processing', 'batched'], 'settled', ['completed', 'ended'], 'complete', 'the bank has not returned it in its days'),
  row(['processing', 'batched'], 'refused', ['failed', 'ended'], 'give_back', 'the bank refused the file'),
  row(['processing', 'batched'], 'returned', ['failed', 'ended'], 'return', 'returned by the bank'),
  row(['completed', 'ended'], 'returned', ['failed', 'ended'], 'return', 'returned by the bank'),
  // lightning: committed before our node is asked, ended by what it says; a payment that it never ends waits for an operator
  row(['processing', 'queued'], 'committed', ['processing', 'batched'], 'sign', null),
  row(['processing', 'batched'], 'outcome_unknown', ['processing', 'held'], null, null),
  row(['processing', 'batched'], 'paid', ['completed', 'ended'], 'complete', 'paid over Lightning'),
  row(['processing', 'held'], 'paid', ['completed', 'ended'], 'complete', 'paid over Lightning'),
  row(['processing', 'batched'], 'unpayable', ['failed', 'ended'], 'give_back', 'the Lightning node could not pay it'),
  row(['processing', 'held'], 'unpayable', ['failed', 'ended'], 'give_back', 'the Lightning node could not pay it'),
  // as many of its merchant's hang as may: it can be cancelled again
  row(['processing', 'queued'], 'crowded', ['pending', 'held'], null, 'enough of its merchant are on their way'),
  row(['processing', 'queued'], 'invoice_expired', ['failed', 'ended'], 'release', 'its invoice expired before it was paid'),
  row(['processing', 'held'], 'invoice_expired', ['failed', 'ended'], 'release', 'its invoice expired before it was paid'),
  row(['pending', 'held'], 'invoice_expired', ['failed', 'ended'], 'release', 'its invoice expired before it was paid'),
  // nobody was asked to pay it
  row(['processing', 'queued'], 'unpayable', ['failed', 'ended'], 'release', 'the Lightning node could not pay it'),
];

const BY_KEY: ReadonlyMap<string, PayoutTransition> = new Map(
  PAYOUT_TRANSITIONS.map((one) => [`${one.from?.join() ?? null} ${one.event}`, one]),
);

/** The row for an event; throws for an event that this status and step do not know, because every caller has locked the payout. */
export function payoutTransition(from: PayoutTransition['from'], event: PayoutEvent): PayoutTransition {
  const found = BY_KEY.get(`${from?.join() ?? null} ${event}`);
  if (found === undefined) throw new Error(`a payout that is ${from?.join(', ') ?? 'new'} knows no event ${event}`);
  return found;
}
