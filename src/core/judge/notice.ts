// A payment is seen for the first time (or is back): is it on time, and which rule does it meet. Rules 2, 3, 9, 10, 18, 21, 22.
import { formatAmount } from '../money.ts';
import type { TransactionEvent } from '../transaction-states.ts';
import type { Case, Coin, ReviewCause } from './case.ts';
import { isBooked, isDead, isLive, isRight, presentRight } from './coins.ts';
import { replacementsIn } from './replacements.ts';
import { announce, happen } from './steps.ts';

/** Takes note of every coin that is there and was not, and of every one that has left. True when anything changed. */
export function noticeCoins(it: Case): boolean {
  let changed = false;
  const news: { readonly coin: Coin; readonly known: boolean }[] = [];
  for (const coin of it.coins) {
    if (!isLive(coin)) {
      // an unbooked coin that is only out of the mempool for a while keeps its place until it is dead
      if (coin.present && (isBooked(coin) || isDead(it, coin))) {
        coin.present = false;
        changed = true;
      }
      continue;
    }
    if (coin.valueRate === null && coin.arrivalRate !== null) {
      coin.valueRate = coin.arrivalRate;
      changed = true;
    }
    if (!coin.present) news.push({ coin, known: coin.classified });
  }
  if (news.length === 0) return changed;
  const replacements = replacementsIn(it);
  for (const { coin } of news) if (!coin.classified) replacements.classify(coin);
  // after an outage many come at once, a late one perhaps before one that is on time: those that are on time are told first
  const isLate = ({ coin }: { readonly coin: Coin }) => isRight(it, coin) && coin.onTimeMinor === 0n;
  for (const { coin, known } of [...news.filter((one) => !isLate(one)), ...news.filter(isLate)]) {
    coin.present = true;
    replacements.inheritLoss(coin);
    // booked, or lost and back: it has its place in the books already (rule 17)
    if (isBooked(coin) || coin.wasLost || coin.owed > 0n) continue;
    if (isRight(it, coin)) noticeRight(it, coin, known);
    else noticeOther(it, coin, known);
  }
  return true;
}

function noticeRight(it: Case, coin: Coin, known: boolean): void {
  const onTime = coin.onTimeMinor > 0n;
  const { transaction } = it;
  switch (transaction.status) {
    case 'started':
    case 'timedout':
    case 'timedout_checked':
      enterOr(it, onTime);
      return;
    case 'pending':
      happen(it, 'paid_more');
      return;
    case 'cancelled':
      review(it, 'paid_late', 'late');
      return;
    case 'review': {
      const goesOn = transaction.why === 'other' && onTime && transaction.word === 'none';
      if (goesOn && presentRight(it).length === 1) {
        transaction.why = null;
        happen(it, 'paid_on_time');
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
      if (!known) announceExtra(it, coin);
      return;
  }
}

function enterOr(it: Case, onTime: boolean): void {
  if (onTime) happen(it, 'paid_on_time');
  else review(it, 'paid_late', 'late');
}

function noticeOther(it: Case, coin: Coin, known: boolean): void {
  if (review(it, 'other_coin', 'other')) return;
  if (!known) announceOther(it, coin);
}

/** Goes to review for `cause`; a review that is already there keeps its cause unless it was only about another coin. */
export function review(it: Case, event: TransactionEvent, cause: ReviewCause): boolean {
  const { transaction } = it;
  const keeps = transaction.status === 'review' && transaction.why !== null && transaction.why !== 'other';
  const moved = happen(it, event);
  if (moved && !keeps) transaction.why = cause;
  return moved;
}

function announceOther(it: Case, coin: Coin): void {
  announce(it, 'transaction.other_asset', coinData(coin));
}
export function announceExtra(it: Case, coin: Coin): void {
  announce(it, 'transaction.extra_payment', coinData(coin));
}
export function coinData(coin: Coin): Record<string, string> {
  return { currency: coin.currency, txid: coin.txid, amount: formatAmount(coin.amount, coin.currency) };
}
