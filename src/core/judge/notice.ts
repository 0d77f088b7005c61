// A payment is seen for the first time (or is back): is it on time, and which rule does it meet. Rules 2, 3, 9, 10, 18, 21, 22.
import { formatAmount } from '../money.ts';
import type { TransactionEvent } from '../transaction-states.ts';
import type { Case, Payment, ReviewCause } from './case.ts';
import { inQuotedCurrency, isBooked, isLive, isWithdrawn, presentInQuotedCurrency } from './payments.ts';
import { replacementsIn } from './replacements.ts';
import { announce, applyEvent } from './steps.ts';

/** Takes note of every payment that is there and was not, and of every one that has left. True when anything changed. */
export function noticePayments(it: Case): boolean {
  let changed = false;
  const news: { readonly payment: Payment; readonly known: boolean }[] = [];
  for (const payment of it.payments) {
    if (!isLive(payment)) {
      // an unbooked payment that is only out of the mempool for a while keeps its place until it is dead
      if (payment.present && (isBooked(payment) || isWithdrawn(it, payment))) {
        payment.present = false;
        changed = true;
      }
      continue;
    }
    if (payment.valueRate === null && payment.arrivalRate !== null) {
      payment.valueRate = payment.arrivalRate;
      changed = true;
    }
    if (!payment.present) news.push({ payment, known: payment.classified });
  }
  if (news.length === 0) return changed;
  const replacements = replacementsIn(it);
  for (const { payment } of news) if (!payment.classified) replacements.classify(payment);
  // after an outage many come at once, a late one perhaps before one that is on time: those that are on time are told first
  const isLate = ({ payment }: { readonly payment: Payment }) => inQuotedCurrency(it, payment) && payment.onTimeMinor === 0n;
  for (const { payment, known } of [...news.filter((one) => !isLate(one)), ...news.filter(isLate)]) {
    payment.present = true;
    replacements.inheritLoss(payment);
    // booked, or lost and back: it has its place in the books already (rule 17)
    if (isBooked(payment) || payment.wasLost || payment.owed > 0n) continue;
    if (inQuotedCurrency(it, payment)) noticeInQuotedCurrency(it, payment, known);
    else noticeOther(it, payment, known);
  }
  return true;
}

function noticeInQuotedCurrency(it: Case, payment: Payment, known: boolean): void {
  const onTime = payment.onTimeMinor > 0n;
  const { transaction } = it;
  switch (transaction.status) {
    case 'started':
    case 'timedout':
    case 'timedout_checked':
      enterOr(it, onTime);
      return;
    case 'pending':
      applyEvent(it, 'paid_more');
      return;
    case 'cancelled':
      review(it, 'paid_late', 'late');
      return;
    case 'review': {
      const goesOn = transaction.reviewCause === 'other' && onTime && transaction.merchantDecision === 'none';
      if (goesOn && presentInQuotedCurrency(it).length === 1) {
        transaction.reviewCause = null;
        applyEvent(it, 'paid_on_time');
      } else review(it, 'another_payment', 'late');
      return;
    }
    case 'declined':
      review(it, 'another_payment', 'late');
      return;
    case 'confirmed':
    case 'succeeded':
    case 'settled':
    case 'reimbursed':
      if (!known) announceExtra(it, payment);
      return;
  }
}

function enterOr(it: Case, onTime: boolean): void {
  if (onTime) applyEvent(it, 'paid_on_time');
  else review(it, 'paid_late', 'late');
}

function noticeOther(it: Case, payment: Payment, known: boolean): void {
  if (review(it, 'other_coin', 'other')) return;
  if (!known) announceOther(it, payment);
}

/** Goes to review for `cause`; a review that is already there keeps its cause unless it was only about another currency. */
export function review(it: Case, event: TransactionEvent, cause: ReviewCause): boolean {
  const { transaction } = it;
  const keeps = transaction.status === 'review' && transaction.reviewCause !== null && transaction.reviewCause !== 'other';
  const moved = applyEvent(it, event);
  if (moved && !keeps) transaction.reviewCause = cause;
  return moved;
}

function announceOther(it: Case, payment: Payment): void {
  announce(it, 'transaction.other_asset', paymentData(payment));
}
export function announceExtra(it: Case, payment: Payment): void {
  announce(it, 'transaction.extra_payment', paymentData(payment));
}
export function paymentData(payment: Payment): Record<string, string> {
  return { currency: payment.currency, txid: payment.txid, amount: formatAmount(payment.amount, payment.currency) };
}
