// The statuses in words for people, with a sign besides the colour.
import type { PayoutStatus } from '../../core/payouts/states.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { type Html, html } from '../pages/html.ts';

type Tone = 'waits' | 'runs' | 'done' | 'asks' | 'over' | 'bad';
const SIGNS: Readonly<Record<Tone, string>> = { waits: '○', runs: '◐', done: '✓', asks: '⚑', over: '–', bad: '✕' };

const TRANSACTIONS: Readonly<Record<TransactionStatus, readonly [string, Tone]>> = {
  started: ['Awaiting payment', 'waits'],
  pending: ['Confirming', 'runs'],
  confirmed: ['Confirmed', 'done'],
  succeeded: ['Paid', 'done'],
  settled: ['Paid, final', 'done'],
  review: ['Needs review', 'asks'],
  declined: ['Declined', 'bad'],
  reimbursed: ['Refunded', 'over'],
  timedout: ['Expired', 'over'],
  timedout_checked: ['Expired, closed', 'over'],
  cancelled: ['Cancelled', 'over'],
};
const PAYOUTS: Readonly<Record<PayoutStatus, readonly [string, Tone]>> = {
  pending: ['Pending', 'waits'],
  processing: ['Processing', 'runs'],
  completed: ['Completed', 'done'],
  failed: ['Failed', 'bad'],
};
const PARTLY_PAID = ['Partly paid', 'runs'] as const;

const badge = ([words, tone]: readonly [string, Tone]): Html =>
  html`<span class="badge ${tone}"><span aria-hidden="true">${SIGNS[tone]}</span> ${words}</span>`;

/** @param of amounts as the API writes them: a pending payment that is not complete waits for the rest, not for confirmations */
export function transactionBadge(of: {
  readonly status: TransactionStatus;
  readonly crypto_received: string;
  readonly crypto_amount: string;
}): Html {
  const isPartly = of.status === 'pending' && exact(of.crypto_received) < exact(of.crypto_amount);
  return badge(isPartly ? PARTLY_PAID : TRANSACTIONS[of.status]);
}
/** An amount in units that every currency's decimals fit into: an answer has as many decimals as its amount needs. */
function exact(amount: string): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  return BigInt(whole + decimals.padEnd(18, '0'));
}

/** Of a payout. */
export const payoutBadge = (status: PayoutStatus): Html => badge(PAYOUTS[status]);

/** For lists to choose from. */
export const TRANSACTION_CHOICES = Object.entries(TRANSACTIONS).map(([status, [words]]) => [status, words] as const);
export const PAYOUT_CHOICES = Object.entries(PAYOUTS).map(([status, [words]]) => [status, words] as const);
