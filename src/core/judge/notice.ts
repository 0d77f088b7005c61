// A payment is seen for the first time (or is back): is it on time, and which rule does it meet. Rules 2, 3, 9, 10, 18, 21, 22.
import { atLeastZero, basisPointsDown, formatAmount, greatest, least, minus, plus, sum } from '../money.ts';
import type { TransactionEvent } from '../transaction-states.ts';
import type { Case, Coin, ReviewCause } from './case.ts';
import { isBooked, isDead, isLive, isOnTime, isRight, presentRight, tolerance } from './coins.ts';
import { announce, happen } from './steps.ts';

/** Takes note of every coin that is there and was not, and of every one that has left. True when anything changed. */
export function noticeCoins(it: Case): boolean {
  let changed = false;
  const winners = new Set(it.coins.map((coin) => coin.conflictTxid));
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
    if (coin.present) continue;
    news.push({ coin, known: coin.classified });
    if (!coin.classified) classify(it, coin, winners.has(coin.txid));
    changed = true;
  }
  // after an outage many come at once, a late one perhaps before one that is on time: those that are on time are told first
  const isLate = ({ coin }: { readonly coin: Coin }) => isRight(it, coin) && coin.onTimeMinor === 0n;
  for (const { coin, known } of [...news.filter((one) => !isLate(one)), ...news.filter(isLate)]) {
    coin.present = true;
    if (winners.has(coin.txid)) inheritLoss(it, coin);
    // booked, or lost and back: it has its place in the books already (rule 17)
    if (isBooked(coin) || coin.wasLost || coin.owed > 0n) continue;
    if (isRight(it, coin)) noticeRight(it, coin, known);
    else noticeOther(it, coin, known);
  }
  return changed;
}

/** On time or late, once and for ever. A fee replacement is on time up to what it replaces; after a cancel every payment is late. */
function classify(it: Case, coin: Coin, replaces: boolean): void {
  if (it.transaction.word === 'cancelled') coin.onTimeMinor = 0n;
  else if (isOnTime(it.transaction, coin)) coin.onTimeMinor = coin.amount;
  else coin.onTimeMinor = replaces ? least(coin.amount, inherited(it, coin)) : 0n;
  coin.classified = true;
}

/** What a fee replacement inherits and no other output of it has taken yet. */
function inherited(it: Case, coin: Coin): bigint {
  const kin = it.coins.filter((other) => other.id !== coin.id && other.currency === coin.currency);
  const replaced = kin.filter((other) => other.conflictTxid === coin.txid);
  // what was replaced before it was ever judged was on time or late all the same
  const onTime = (other: Coin) => (other.classified ? other.onTimeMinor : isOnTime(it.transaction, other) ? other.amount : 0n);
  const most = sum(
    rowsOf(replaced).map((row) =>
      [...new Set(row.map((other) => other.txid))]
        .map((txid) => sum(row.filter((other) => other.txid === txid).map(onTime)))
        .reduce(greatest),
    ),
  );
  const taken = sum(kin.filter((other) => other.txid === coin.txid && other.classified).map((other) => other.onTimeMinor));
  return atLeastZero(minus(most, taken));
}

/** Replaced payments that spend the same outpoint are a row of replacements, one payment; those that share none are several. */
function rowsOf(replaced: readonly Coin[]): (readonly Coin[])[] {
  let rows: (readonly Coin[])[] = [];
  for (const coin of replaced) {
    const touching = rows.filter((row) =>
      row.some((other) => other.txid === coin.txid || other.spends.some((outpoint) => coin.spends.includes(outpoint))),
    );
    rows = [...rows.filter((row) => !touching.includes(row)), [...touching.flat(), coin]];
  }
  return rows;
}

/**
 * A payment that takes the place of a booked one is one event with it: what the loss took comes back with it, up to its amount; and all of
 * it where that is no more than the price and its tolerance (rules 5, 17).
 */
function inheritLoss(it: Case, coin: Coin): void {
  if (isBooked(coin)) return;
  const lost = it.coins.filter(
    (other) => other.conflictTxid === coin.txid && other.currency === coin.currency && !isBooked(other),
  );
  if (sum(lost.map((other) => other.owed)) === 0n) return;
  for (const other of lost) {
    const room = minus(minus(coin.amount, coin.owed), coin.owedFee);
    const taken = least(plus(other.owed, other.owedFee), room);
    const owed = least(other.owed, minus(taken, least(other.owedFee, basisPointsDown(taken, it.feeBps))));
    const fee = minus(taken, owed);
    coin.owed = plus(coin.owed, owed);
    coin.owedFee = plus(coin.owedFee, fee);
    other.owed = minus(other.owed, owed);
    other.owedFee = minus(other.owedFee, fee);
    if (other.owed > 0n) continue;
    coin.wasLost ||= other.wasLost;
    other.wasLost = false;
  }
  const rest = it.coins.filter((other) => other.id !== coin.id && isRight(it, other));
  const elsewhere = sum(rest.map((other) => plus(plus(other.inAvailable, other.owed), other.owedFee)));
  const most = plus(it.transaction.need, tolerance(it.transaction));
  if (coin.owed === 0n || !isRight(it, coin) || plus(elsewhere, coin.amount) > most) return;
  coin.owedFee = basisPointsDown(coin.amount, it.feeBps);
  coin.owed = minus(coin.amount, coin.owedFee);
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
