// Questions about one coin of a case: is it there, how deep, for how long is it gone, does it count. No decision is made here.
import { confirmationsToReach } from '../confirmations.ts';
import { atLeastZero, basisPointsDown, basisPointsExact, least, minus, sum } from '../money.ts';
import { cryptoForUsdDown, isWorth, type Valued } from '../rate.ts';
import {
  BOOKED_GONE_MS,
  type Case,
  type CaseTransaction,
  type ChainView,
  type Coin,
  DAY_MS,
  GRACE_MS,
  OUTAGE_GRACE_MS,
  UNBOOKED_GONE_MS,
  WINDOW_MS,
} from './case.ts';

const MAX_TOLERANCE_USD_MINOR = 5_00n;
const WHOLE_BPS = 10_000;

export function chainOf(it: Case, coin: Coin): ChainView {
  const view = it.chains.get(coin.currency);
  if (view === undefined) throw new Error(`no view of the chain of ${coin.currency}`);
  return view;
}
export function isRight(it: Case, coin: Coin): boolean {
  return coin.currency === it.transaction.currency;
}
/** The time of a coin's chain: as far as it was read, and never ahead of now (our own clock may have been set back since). */
function timeOf(it: Case, coin: Coin): number {
  return Math.min(chainOf(it, coin).timeMs, it.nowMs);
}
/** On the best chain or in the mempool. */
export function isLive(coin: Coin): boolean {
  return coin.state === 'mempool' || coin.state === 'mined';
}
export function isBooked(coin: Coin): boolean {
  return coin.depositEntryKey !== null;
}
export function confirmationsOf(it: Case, coin: Coin): number {
  return coin.height === null ? 0 : Math.max(0, chainOf(it, coin).tipHeight - coin.height + 1);
}
/** A coinbase output that cannot be spent yet (100 blocks, DOGE 240). */
function isImmature(it: Case, coin: Coin): boolean {
  const needed = confirmationsToReach(
    coin.currency,
    { confirmations: 0, coinbase: coin.coinbase, lock: null },
    { depth: 0, lock: null },
  );
  return confirmationsOf(it, coin) < needed;
}
/** How long a coin has been out of the mempool and the chain, counted only while our node is past the height where it was last seen. */
function goneForMs(it: Case, coin: Coin): number {
  if (coin.state !== 'gone' || coin.goneSinceMs === null) return 0;
  const chain = chainOf(it, coin);
  return coin.lastHeight !== null && chain.tipHeight < coin.lastHeight ? 0 : timeOf(it, coin) - coin.goneSinceMs;
}
/** Double-spent, replaced, or 72 hours out of the mempool (rules 6, 15). */
export function isDead(it: Case, coin: Coin): boolean {
  return coin.state === 'conflicted' || goneForMs(it, coin) >= UNBOOKED_GONE_MS;
}
/** A booked coin that is conflicted, or nowhere for ten minutes (rule 17). */
export function isLost(it: Case, coin: Coin): boolean {
  return isBooked(coin) && (coin.state === 'conflicted' || goneForMs(it, coin) >= BOOKED_GONE_MS);
}

/** Whether any observer saw it by W + 60 s; or, after an outage of ours, its first pass finds it in a block dated, or in the mempool, by W + 2 h. */
export function isOnTime(transaction: CaseTransaction, coin: Coin): boolean {
  const deadline = transaction.windowEndsAtMs + GRACE_MS;
  if (coin.seenAtMs <= deadline) return true;
  const evidenceMs = coin.foundMined && coin.blockTimeMs !== null ? coin.blockTimeMs : coin.seenAtMs;
  return coin.caughtUpAtMs < deadline && evidenceMs <= transaction.windowEndsAtMs + OUTAGE_GRACE_MS;
}

/** 24 hours after a transaction was created (rule 8). */
export function dayAfterCreation(transaction: CaseTransaction): number {
  return transaction.windowEndsAtMs - WINDOW_MS + DAY_MS;
}

/** Whether a block is dated more than 24 h after the window (rule 24). */
export function isAfterDay(transaction: CaseTransaction, block: { readonly timeMs: number }): boolean {
  return block.timeMs > transaction.windowEndsAtMs + DAY_MS;
}

/** The tolerance in USD: the merchant's percentage, at most 5 USD; in ten-thousandths of a cent, so that nothing is rounded. */
export function toleranceUsd({ usdMinor, toleranceBps }: CaseTransaction): bigint {
  return least(basisPointsExact(usdMinor, toleranceBps), basisPointsExact(MAX_TOLERANCE_USD_MINOR, WHOLE_BPS));
}
/** The tolerance in coin: the merchant's percentage of need, at most what 5 USD buy at the quote. */
export function tolerance(transaction: CaseTransaction): bigint {
  return least(
    basisPointsDown(transaction.need, transaction.toleranceBps),
    cryptoForUsdDown(MAX_TOLERANCE_USD_MINOR, transaction.currency, transaction.rate),
  );
}
/** need − tol. */
export function enough(transaction: CaseTransaction): bigint {
  return minus(transaction.need, tolerance(transaction));
}

export function presentRight(it: Case): Coin[] {
  return it.coins.filter((coin) => isRight(it, coin) && coin.present && isLive(coin));
}
/** The part of a coin that is late. */
export function lateMinor(coin: Coin): bigint {
  return minus(coin.amount, coin.onTimeMinor);
}

/**
 * Rule 23: late coins of a pending transaction count when together they complete need − tol and were worth the missing dollars when they
 * arrived. Null = a rate of arrival is not known yet.
 * @param among the coins that are asked about: for a credit only those that have R, or a coin that never confirms would vouch for the price
 *   of one that does
 */
export function lateCounts(it: Case, among: readonly Coin[]): boolean | null {
  const { need, currency, rate } = it.transaction;
  const open = among.filter((coin) => !isBooked(coin));
  const missing = atLeastZero(minus(need, sum(open.map((coin) => coin.onTimeMinor))));
  const late = open.filter((coin) => lateMinor(coin) > 0n);
  if (late.length === 0 || missing <= tolerance(it.transaction)) return false;
  if (sum(late.map(lateMinor)) < minus(missing, tolerance(it.transaction))) return false;
  const parts = valued(late, lateMinor);
  return parts === null ? null : isWorth(parts, currency, { minor: missing, rate }, toleranceUsd(it.transaction));
}

/** These coins (or a part of each) at the rates at which they are valued; null when one is not valued yet. */
export function valued(coins: readonly Coin[], part: (coin: Coin) => bigint): Valued[] | null {
  const parts: Valued[] = [];
  for (const coin of coins) {
    if (coin.valueRate === null) return null;
    parts.push({ minor: part(coin), rate: coin.valueRate });
  }
  return parts;
}

/** What of a coin counts towards need: its part that is on time, and the late part when rule 23 lets it. */
export function countingMinor(coin: Coin, late: boolean): bigint {
  return late ? coin.amount : coin.onTimeMinor;
}

/**
 * When, on its own chain's clock, a coin that is nowhere will be lost (rule 17) or withdrawn (rules 6, 15); null when no time is waited for.
 * While the node is below the height where it was last seen that height is waited for instead.
 */
export function nextTime(it: Case, coin: Coin): number | null {
  if (coin.state !== 'gone' || coin.goneSinceMs === null || !(isBooked(coin) || coin.classified)) return null;
  const at = coin.goneSinceMs + (isBooked(coin) ? BOOKED_GONE_MS : UNBOOKED_GONE_MS);
  return at > timeOf(it, coin) ? at : null;
}

/**
 * The coins that count: of a pending transaction those on time, and the late ones that rule 23 lets; afterwards those that are credited, also
 * while one of them is out of the chain for a moment.
 */
export function countingCoins(it: Case): readonly Coin[] {
  if (it.transaction.status !== 'pending') return it.coins.filter((coin) => coin.credited > 0n);
  const right = presentRight(it);
  const late = lateCounts(it, right) === true;
  return right.filter((coin) => countingMinor(coin, late) > 0n);
}

/** Notes of every coin whether it counts; another coin than the transaction's never does, nor a coinbase output before it is mature. */
export function noteCounting(it: Case, counting: readonly Coin[]): void {
  const among = new Set(counting);
  for (const coin of it.coins) {
    coin.counts = among.has(coin) && isRight(it, coin) && isLive(coin) && !isImmature(it, coin);
  }
}

const COUNTING_STATUSES: ReadonlySet<string> = new Set(['pending', 'confirmed', 'succeeded', 'settled', 'reimbursed']);

/** From where confirmations are shown: the youngest coin that counts, in review and the like of all that are there. Null = 0. */
export function youngestCounting(it: Case, counting: readonly Coin[]): { height: number; currency: Coin['currency'] } | null {
  const live = it.coins.filter(isLive);
  let shown: readonly Coin[] = it.transaction.status === 'review' ? live : live.filter((coin) => isRight(it, coin));
  if (COUNTING_STATUSES.has(it.transaction.status))
    shown = counting.filter((coin) => isRight(it, coin) && !(isLive(coin) && isImmature(it, coin)));
  let youngest: Coin | null = null;
  for (const coin of shown) {
    if (coin.height === null) return null;
    if (youngest === null || confirmationsOf(it, coin) < confirmationsOf(it, youngest)) youngest = coin;
  }
  return youngest === null || youngest.height === null ? null : { height: youngest.height, currency: youngest.currency };
}

/** Σ of the payments in the transaction's currency on the best chain or in the mempool. */
export function received(it: Case): bigint {
  return sum(it.coins.filter((coin) => isRight(it, coin) && isLive(coin)).map((coin) => coin.amount));
}
export function suspenseOf(coins: readonly Coin[]): bigint {
  return sum(coins.map((coin) => coin.inSuspense));
}
