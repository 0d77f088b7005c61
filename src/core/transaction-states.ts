// The life of a transaction as one data table: from, event, to. Nothing else decides a status. The judge finds out which event happened,
// the store writes the new status guarded by the old one, and a test draws ARCHITECTURE's picture from these rows.

export const TRANSACTION_STATUSES = [
  'started',
  'pending',
  'confirmed',
  'succeeded',
  'timedout',
  'cancelled',
  'declined',
  'review',
  'reimbursed',
  'settled',
  'timedout_checked',
] as const;
export type TransactionStatus = (typeof TRANSACTION_STATUSES)[number];

export type TransactionEvent =
  | 'created'
  | 'paid_on_time'
  | 'paid_more'
  | 'paid_late'
  | 'another_payment'
  | 'other_currency'
  | 'enough_confirmed'
  | 'booked'
  | 'short'
  | 'window_passed'
  | 'nothing_on_chain'
  | 'late_accepted'
  | 'resolved_accept'
  | 'resolved_decline'
  | 'reimbursement_confirmed'
  | 'all_gone_in_window'
  | 'all_gone'
  | 'reorged_below'
  | 'booked_payment_lost'
  | 'lost_payment_back'
  | 'final'
  | 'cancelled_by_merchant'
  | 'confirmed_too_late';

export type Transition = {
  /** The number of the rule in behaviour §3. */
  readonly rule: number;
  readonly from: TransactionStatus | null;
  readonly event: TransactionEvent;
  readonly to: TransactionStatus;
  /** The text for the history. */
  readonly reason: string;
};

const each = (
  rule: number,
  from: readonly (TransactionStatus | null)[],
  event: TransactionEvent,
  to: TransactionStatus,
  reason: string,
) => from.map((status): Transition => ({ rule, from: status, event, to, reason }));

/** Every transition there is. */
export const TRANSITIONS: readonly Transition[] = [
  ...each(1, [null], 'created', 'started', 'created'),
  ...each(2, ['started', 'review'], 'paid_on_time', 'pending', 'payment seen'),
  ...each(3, ['pending'], 'paid_more', 'pending', 'another payment seen'),
  ...each(4, ['pending'], 'enough_confirmed', 'confirmed', 'enough confirmations'),
  ...each(5, ['confirmed'], 'booked', 'succeeded', 'credited to the balance'),
  ...each(6, ['pending'], 'short', 'declined', 'less than asked for arrived in time'),
  ...each(7, ['started'], 'window_passed', 'timedout', 'nothing arrived in the payment window'),
  ...each(8, ['timedout'], 'nothing_on_chain', 'timedout_checked', 'nothing arrived in 24 hours'),
  ...each(9, ['started', 'timedout', 'timedout_checked', 'cancelled'], 'paid_late', 'review', 'a payment arrived late'),
  ...each(10, ['timedout', 'timedout_checked'], 'paid_on_time', 'pending', 'a payment that was on time'),
  ...each(11, ['review'], 'late_accepted', 'confirmed', 'late payment accepted by policy'),
  ...each(12, ['review', 'declined'], 'resolved_accept', 'confirmed', 'accepted by the merchant'),
  ...each(
    13,
    ['review', 'declined', 'succeeded', 'settled'],
    'reimbursement_confirmed',
    'reimbursed',
    'returned to the customer',
  ),
  ...each(14, ['review'], 'resolved_decline', 'declined', 'refused by the merchant'),
  ...each(15, ['pending'], 'all_gone_in_window', 'started', 'the payment was withdrawn'),
  ...each(15, ['pending'], 'all_gone', 'timedout', 'the payment was withdrawn'),
  ...each(16, ['pending', 'confirmed'], 'reorged_below', 'pending', 'a reorganisation took confirmations back'),
  ...each(17, ['succeeded', 'settled'], 'booked_payment_lost', 'review', 'a credited payment was lost'),
  ...each(17, ['review'], 'lost_payment_back', 'confirmed', 'the lost payment is back'),
  ...each(
    18,
    ['started', 'timedout', 'timedout_checked', 'cancelled', 'declined', 'review'],
    'other_currency',
    'review',
    'another currency arrived at the address',
  ),
  ...each(19, ['succeeded'], 'final', 'settled', 'final'),
  ...each(20, ['started', 'pending'], 'cancelled_by_merchant', 'cancelled', 'cancelled by the merchant'),
  ...each(22, ['declined', 'review'], 'another_payment', 'review', 'another payment arrived'),
  ...each(24, ['pending'], 'confirmed_too_late', 'review', 'confirmed late at a lower price'),
];

const BY_KEY: ReadonlyMap<string, Transition> = new Map(TRANSITIONS.map((row) => [`${row.from} ${row.event}`, row]));

/** The row for an event in a status; null when the table has none (the event changes nothing). */
export function transition(from: TransactionStatus | null, event: TransactionEvent): Transition | null {
  return BY_KEY.get(`${from} ${event}`) ?? null;
}

/** Statuses in which payments may wait for their booking: in every other status a payment at its required depth goes to suspense. */
export const BEFORE_BOOKING: ReadonlySet<TransactionStatus> = new Set(['started', 'pending', 'confirmed']);
/** Statuses in which `confirmed_at` is null. */
export const UNCONFIRMED: ReadonlySet<TransactionStatus> = new Set(['started', 'timedout', 'cancelled']);

/** Announcements that are no change of status. */
export const ANNOUNCEMENTS = ['transaction.extra_payment', 'transaction.other_asset', 'transaction.reorged'] as const;
export type Announcement = (typeof ANNOUNCEMENTS)[number];
