// A payment is seen for the first time, or is back: is it on time, and which rule applies to it? Rules 2, 3, 9, 10, 18, 21, 22.
import { formatAmount } from '../money.ts';
import type { TransactionEvent } from '../transaction-states.ts';
import type { Case, Payment, ReviewCause } from './case.ts';
import { inQuotedCurrency, isBooked, isLive, isOfBlock, isWithdrawn, presentInQuotedCurrency } from './payments.ts';
import { portion } from './portion.ts';
import { replacementsIn } from './replacements.ts';
import { announce, applyEvent } from './steps.ts';

/** Takes note of every new payment and of every one that has left. True when anything changed. */
export function noticePayments(it: Case): boolean {
  const { left, unvalued, found } = newsOf(it);
  const gone = portion(it, left);
  for (const payment of gone) payment.present = false;
  const valued = portion(it, unvalued);
  for (const payment of valued) payment.valueRate = payment.arrivalRate;
  return noticeNew(it, found) || gone.length > 0 || valued.length > 0;
}

/** The payments that have left, those whose value has become known, and those that are new or back; found in one pass, since there may be very many. */
function newsOf(it: Case): { readonly left: Payment[]; readonly unvalued: Payment[]; readonly found: Payment[] } {
  const news = { left: [] as Payment[], unvalued: [] as Payment[], found: [] as Payment[] };
  for (const payment of it.payments) {
    if (isLive(payment)) {
      if (!payment.present) news.found.push(payment);
      else if (payment.valueRate === null && payment.arrivalRate !== null) news.unvalued.push(payment);
      // an unbooked payment that is out of the mempool only for a while keeps its place until it is withdrawn
    } else if (payment.present && (isBooked(payment) || isWithdrawn(it, payment))) news.left.push(payment);
  }
  return news;
}

function noticeNew(it: Case, payments: readonly Payment[]): boolean {
  if (payments.length === 0) return false;
  const found = payments.map((payment) => ({ payment, known: payment.classified }));
  const replacements = replacementsIn(it);
  for (const { payment, known } of found) if (!known) replacements.classify(payment);
  // after an outage many payments are found at once, perhaps a late one before one that is on time: those on time are handled first
  const isLate = ({ payment }: { readonly payment: Payment }) => inQuotedCurrency(it, payment) && payment.onTimeMinor === 0n;
  const inTurn = [...found.filter((one) => !isLate(one)), ...found.filter(isLate)];
  const news = portion(it, inTurn);
  for (const { payment, known } of inTurn.slice(news.length)) if (!known) unclassify(payment);
  for (const { payment, known } of news) {
    payment.present = true;
    payment.valueRate ??= payment.arrivalRate;
    replacements.inheritLoss(payment);
    // booked, or lost and back: the books already have its place (rule 17)
    if (isBooked(payment) || payment.wasLost || payment.owed > 0n) continue;
    if (inQuotedCurrency(it, payment)) noticeInQuotedCurrency(it, payment, known);
    else noticeOther(it, payment, known);
  }
  return news.length > 0;
}

/** Undoes the classification of a payment that is left for the next verdict; that one comes to the same result. */
function unclassify(payment: Payment): void {
  payment.classified = false;
  payment.onTimeMinor = 0n;
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
      if (goesOn && presentInQuotedCurrency(it).length === 1) applyEvent(it, 'paid_on_time');
      else review(it, 'another_payment', 'late');
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
  // anybody can name our address as that of his validator: the order is what it was
  if (!isOfBlock(payment) && review(it, 'other_currency', 'other')) return;
  if (!known) announceOther(it, payment);
}

/** Moves to review for `cause`; a transaction that is already in review keeps its cause, unless that was only a payment in another currency. */
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
/** Announces `transaction.extra_payment` (rule 21); the status stays. */
export function announceExtra(it: Case, payment: Payment): void {
  announce(it, 'transaction.extra_payment', paymentData(payment));
}
/** What an event tells of the payment that is its reason: `data.payment` of behaviour §8, the amount as a decimal string. */
export function paymentData(payment: Payment): Record<string, string> {
  return { currency: payment.currency, txid: payment.txid, amount: formatAmount(payment.amount, payment.currency) };
}
