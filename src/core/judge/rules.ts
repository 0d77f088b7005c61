// The rules that wait for a condition: enough confirmed and booked (4, 5, 16, 24), short (6), the window (7, 8), in flight after a cancel (9),
// accepted by policy (11), withdrawn (15), lost and back (17), coins to suspense, settled (19). Each answers whether it did something.
import { confirmationsToReach } from '../confirmations.ts';
import { least, minus, plus, sum } from '../money.ts';
import { isWorth } from '../rate.ts';
import { BEFORE_BOOKING } from '../transaction-states.ts';
import { type Case, type Coin, type DatedBlock, GRACE_MS } from './case.ts';
import {
  chainOf,
  confirmationsOf,
  countingMinor,
  dayAfterCreation,
  enough,
  isAfterDay,
  isBooked,
  isDead,
  isLive,
  isLost,
  isRight,
  lateCounts,
  presentRight,
  suspenseOf,
  tolerance,
  toleranceUsd,
  valued,
} from './coins.ts';
import { announceExtra, coinData, review } from './notice.ts';
import { acceptSuspense, bookDeposit, bookToSuspense, reverseDeposit } from './postings.ts';
import { isFinal, reachesSuspense, reachesTransaction, requiredOfTransaction, suspenseReached, undisputed } from './required.ts';
import { announce, happen } from './steps.ts';

export type Rule = (it: Case) => boolean;

/** Booked coins that are lost: reversed once, from where their units lie (rule 17; in other statuses the status stays). */
export const takeBackLost: Rule = (it) => {
  let changed = false;
  for (const coin of it.coins) {
    if (!isLost(it, coin)) continue;
    const wasTheMerchants = coin.inAvailable > 0n || coin.inRefund > 0n;
    reverseDeposit(it, coin);
    coin.present = false;
    if (wasTheMerchants && happen(it, 'booked_payment_lost')) it.transaction.why = 'loss';
    changed = true;
  }
  return changed;
};

/** A booked coin that a reorganisation moved to the mempool or to another block keeps its entry; it is announced once. */
export const announceReorged: Rule = (it) => {
  let changed = false;
  for (const coin of it.coins) {
    if (!isBooked(coin) || !isLive(coin) || coin.judgedBlockHash === coin.blockHash) continue;
    const moved = coin.judgedBlockHash !== null;
    coin.judgedBlockHash = coin.blockHash;
    if (moved) announce(it, 'transaction.reorged', coinData(coin));
    changed = true;
  }
  return changed;
};

/** Coins that are not part of the price are booked to suspense at the R of their own value. */
export const moveToSuspense: Rule = (it) => {
  const before = BEFORE_BOOKING.has(it.transaction.status);
  const waiting = it.coins.filter((coin) => waitsForBooking(it, coin) && (!isRight(it, coin) || !before));
  const coins = undisputed(it, waiting);
  for (const coin of coins) bookToSuspense(it, coin);
  return coins.length > 0;
};

/** A coin that has what it needs to lie in suspense, and does not: our nodes contradict each other about its chain. */
export function waitsForBooking(it: Case, coin: Coin): boolean {
  return coin.present && isLive(coin) && !isBooked(coin) && reachesSuspense(it, coin);
}

type Deep = { readonly coins: readonly Coin[]; readonly total: bigint; readonly late: boolean };

/** The coins that count and have R, when they are enough; null when they are not. */
function deepEnough(it: Case): Deep | null {
  const reached = presentRight(it).filter((coin) => !isBooked(coin) && reachesTransaction(it, coin));
  const late = lateCounts(it, reached) === true;
  const coins = reached.filter((coin) => countingMinor(coin, late) > 0n);
  const total = sum(coins.map((coin) => countingMinor(coin, late)));
  return total < enough(it.transaction) ? null : { coins, total, late };
}

/** Rules 4 and 24: need − tol has R. */
export const confirm: Rule = (it) => {
  if (it.transaction.status !== 'pending') return false;
  const deep = deepEnough(it);
  if (deep === null || undisputed(it, deep.coins).length < deep.coins.length) return false;
  const late = lateBlock(it, deep);
  if (late === null) return happen(it, 'enough_confirmed');
  if (late.rate === null) return false;
  const { currency, usdMinor } = it.transaction;
  const part = { minor: deep.total, rate: late.rate };
  if (isWorth([part], currency, { usdMinor }, toleranceUsd(it.transaction))) return happen(it, 'enough_confirmed');
  // worth what they were worth then: rule 11 must not accept them at the price of their arrival
  for (const coin of deep.coins) coin.valueRate = late.rate;
  return review(it, 'confirmed_too_late', 'late');
};

/** Rule 5, in the same verdict as rule 4; should a confirmed one ever be found at rest and its coins below R, rule 16. */
export const book: Rule = (it) => {
  if (it.transaction.status !== 'confirmed') return false;
  const deep = deepEnough(it);
  if (deep === null) return happen(it, 'reorged_below');
  let left = deep.total <= plus(it.transaction.need, tolerance(it.transaction)) ? deep.total : it.transaction.need;
  let credited = 0n;
  for (const coin of deep.coins) {
    const credit = least(countingMinor(coin, deep.late), left);
    left = minus(left, credit);
    bookDeposit(it, coin, credit, credited);
    credited = plus(credited, credit);
  }
  happen(it, 'booked');
  announceRest(it);
  return true;
};

/** What is there and not booked when a transaction has succeeded is extra from then on (rule 21). */
export function announceRest(it: Case): void {
  for (const coin of presentRight(it)) if (!isBooked(coin)) announceExtra(it, coin);
}

/** Rule 24: the block by which need − tol has R, when it is dated after W + 24 h. */
function lateBlock(it: Case, { coins, late }: Deep): DatedBlock | null {
  const required = requiredOfTransaction(it);
  const byHeight = coins
    .map((coin) => {
      const depth = confirmationsToReach(
        coin.currency,
        { confirmations: confirmationsOf(it, coin), coinbase: coin.coinbase, lock: coin.lock },
        required,
      );
      return { coin, height: coin.height === null ? chainOf(it, coin).tipHeight : coin.height + Math.max(depth, 1) - 1 };
    })
    .sort((a, b) => a.height - b.height);
  let reached = 0n;
  let height = 0;
  for (const one of byHeight) {
    reached = plus(reached, countingMinor(one.coin, late));
    height = one.height;
    if (reached >= enough(it.transaction)) break;
  }
  // a block that is kept no more is an old one
  const block = it.blocks.get(height);
  return block !== undefined && isAfterDay(it.transaction, block) ? block : null;
}

/** Rule 6: the window and its minute have passed on the chain's own clock, everything that is there has R, and it is not enough. */
export const declineShort: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'pending' || ownTime(it) <= transaction.windowEndsAtMs + GRACE_MS) return false;
  const waiting = it.coins.filter((coin) => isRight(it, coin) && coin.classified && !isDead(it, coin));
  if (waiting.length === 0 || !waiting.every((coin) => reachesTransaction(it, coin))) return false;
  const late = lateCounts(it, waiting);
  if (late === null) return false;
  if (sum(waiting.map((coin) => countingMinor(coin, late))) >= enough(transaction)) return false;
  return happen(it, 'short');
};

/** Rule 15: every payment is double-spent, replaced, or 72 hours out of the mempool. */
export const withdraw: Rule = (it) => {
  if (it.transaction.status !== 'pending') return false;
  const coins = it.coins.filter((coin) => isRight(it, coin) && coin.classified);
  if (coins.length === 0 || coins.some((coin) => !isDead(it, coin))) return false;
  return happen(it, it.nowMs < it.transaction.windowEndsAtMs ? 'all_gone_in_window' : 'all_gone');
};

/** Rule 7. */
export const closeWindow: Rule = (it) =>
  it.transaction.status === 'started' && ownTime(it) >= it.transaction.windowEndsAtMs && happen(it, 'window_passed');

/** Rule 8: 24 hours after creation, once the chain was looked up again. */
export const closeAfterLookup: Rule = (it) => {
  const { transaction } = it;
  const dayAfterMs = dayAfterCreation(transaction);
  if (transaction.status !== 'timedout' || ownTime(it) < dayAfterMs) return false;
  if (transaction.lookedUpAtMs !== null && transaction.lookedUpAtMs >= dayAfterMs) {
    transaction.lookupWanted = false;
    return happen(it, 'nothing_on_chain');
  }
  if (transaction.lookupWanted) return false;
  transaction.lookupWanted = true;
  return true;
};

/** Rule 9 for coins that were in flight when the merchant cancelled. */
export const reviewAfterCancel: Rule = (it) =>
  it.transaction.status === 'cancelled' && presentRight(it).length > 0 && review(it, 'paid_late', 'late');

/** Rule 11: a late payment is accepted by the merchant's policy, at the rate of its arrival; never against the merchant's word. */
export const acceptLate: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'review' || transaction.why !== 'late' || transaction.latePolicy !== 'accept') return false;
  if (transaction.barred || transaction.word === 'cancelled' || transaction.word === 'refused' || it.refundOpen) return false;
  // what is not deep yet waits by itself (rule 21): a stranger's unconfirmed payment keeps nobody from a decision
  const coins = presentRight(it).filter((coin) => isBooked(coin) && reachesTransaction(it, coin));
  // everything in suspense is credited, so all of it must still be there and deep
  if (coins.length === 0 || !suspenseReached(it)) return false;
  const parts = valued(coins, (coin) => coin.amount);
  if (parts === null || isDisputed(it) || suspenseOf(coins) === 0n) return false;
  if (!isWorth(parts, transaction.currency, { usdMinor: transaction.usdMinor }, toleranceUsd(transaction))) return false;
  if (!happen(it, 'late_accepted')) return false;
  acceptSuspense(it, it.coins);
  happen(it, 'booked');
  announceRest(it);
  return true;
};

/** Whether what lies in suspense must stay there because our nodes contradict each other about its chain. */
export function isDisputed(it: Case): boolean {
  const coins = it.coins.filter((coin) => coin.inSuspense > 0n);
  return undisputed(it, coins).length < coins.length;
}

/** Rule 17's way back: what is credited is enough again, or all that was lost is back. */
export const returnFromLoss: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'review' || transaction.why !== 'loss' || it.refundOpen) return false;
  if (it.coins.some((coin) => waitsForBooking(it, coin))) return false;
  if (sum(it.coins.map((coin) => coin.inAvailable)) === 0n) return false;
  const right = it.coins.filter((coin) => isRight(it, coin));
  const credited = sum(right.map((coin) => coin.inAvailable));
  // what lies in suspense was never the merchant's; with it the price may be short, unless the merchant has accepted that before
  const allBack = it.coins.every((coin) => !coin.wasLost) && (suspenseOf(right) === 0n || transaction.word === 'accepted');
  if (credited < enough(transaction) && !allBack) return false;
  if (!happen(it, 'lost_payment_back')) return false;
  return happen(it, 'booked');
};

/** Rule 19: every credited payment is final, and the settlement time has passed since it succeeded. */
export const settle: Rule = (it) => {
  const { transaction } = it;
  if (transaction.status !== 'succeeded' || transaction.succeededAtMs === null) return false;
  if (ownTime(it) < transaction.succeededAtMs + it.settlementMs) return false;
  if (it.coins.some((coin) => coin.inAvailable > 0n && !isFinal(it, coin))) return false;
  return happen(it, 'final');
};

/**
 * The own clock of the transaction's chain: it stands still while the watcher has not caught up. Never ahead of now: our own clock may have
 * been set back since the chain was read.
 */
export function ownTime(it: Case): number {
  return Math.min(it.chains.get(it.transaction.currency)?.timeMs ?? Number.NEGATIVE_INFINITY, it.nowMs);
}
