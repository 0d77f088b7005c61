// Questions about one payment of a case: whether it is there, how deep it is, how long it has been gone, whether it counts. Nothing is
// decided here.
import { confirmationsToReach } from '../confirmations.ts';
import { isEvm } from '../currency.ts';
import { atLeastZero, basisPointsDown, basisPointsExact, least, minus, plus, sum } from '../money.ts';
import { cryptoForUsdDown, isWorth, type Valued } from '../rate.ts';
import type { Case, CaseTransaction, ChainView, Payment } from './case.ts';
import {
  BOOKED_GONE_MS,
  GRACE_MS,
  LATE_BLOCK_AFTER_MS,
  LOOKUP_AFTER_MS,
  OUTAGE_GRACE_MS,
  UNBOOKED_GONE_MS,
  WINDOW_MS,
} from './times.ts';

/** The tolerance is never more than this, whatever the merchant's percentage. */
export const MAX_TOLERANCE_USD_MINOR = 5_00n;
const WHOLE_BPS = 10_000;

/** What our node shows of the chain that a payment lies on. Throws when the case was loaded without it. */
export function chainOf(it: Case, payment: Payment): ChainView {
  const view = it.chains.get(payment.currency);
  if (view === undefined) throw new Error(`no view of the chain of ${payment.currency}`);
  return view;
}
/**
 * Whether a payment is in the currency that the transaction asks for, and somebody has paid it: any other lies in suspense, whatever the
 * status (rule 18, and what goes with the rules).
 */
export function inQuotedCurrency(it: Case, payment: Payment): boolean {
  return payment.currency === it.transaction.currency && !isOfBlock(payment);
}
/**
 * What a block of Ethereum's chain pays by itself, its fees or a validator's withdrawal: no customer has sent it. (A miner of Bitcoin's family
 * chooses whom his block pays, and may pay a bill with it.)
 */
export function isOfBlock({ coinbase, currency }: Payment): boolean {
  return coinbase && isEvm(currency);
}
/** The clock of a payment's chain: the time up to which it was read, and never ahead of now (our own clock may have been set back since). */
function timeOf(it: Case, payment: Payment): number {
  return Math.min(chainOf(it, payment).timeMs, it.nowMs);
}
/** On the best chain or in the mempool. */
export function isLive(payment: Payment): boolean {
  return payment.state === 'mempool' || payment.state === 'mined';
}
/** Whether the ledger has an entry for a payment. */
export function isBooked(payment: Payment): boolean {
  return payment.partKey !== null;
}
/** The blocks from the payment's own to the tip, both counted; 0 for what is in no block. */
export function confirmationsOf(it: Case, payment: Payment): number {
  return payment.height === null ? 0 : Math.max(0, chainOf(it, payment).tipHeight - payment.height + 1);
}
/** A coinbase output that cannot be spent yet (before 100 blocks, on Dogecoin 240). */
function isImmature(it: Case, payment: Payment): boolean {
  const needed = confirmationsToReach(
    payment.currency,
    { confirmations: 0, coinbase: payment.coinbase, lock: null },
    { depth: 0, lock: null },
  );
  return confirmationsOf(it, payment) < needed;
}
/**
 * How long a payment has been out of the mempool and the chain, counted only while our node is past the height where the payment was last
 * seen.
 */
function goneForMs(it: Case, payment: Payment): number {
  if (payment.state !== 'gone' || payment.goneSinceMs === null) return 0;
  const chain = chainOf(it, payment);
  return payment.lastHeight !== null && chain.tipHeight < payment.lastHeight ? 0 : timeOf(it, payment) - payment.goneSinceMs;
}
/** Double-spent, replaced, or 72 hours out of the mempool (rules 6, 15). */
export function isWithdrawn(it: Case, payment: Payment): boolean {
  return payment.state === 'conflicted' || goneForMs(it, payment) >= UNBOOKED_GONE_MS;
}
/** Never in a block, and not locked: everybody can send one that nobody mines. */
export function isUnconfirmed({ height, lastHeight, lock }: Payment): boolean {
  return height === null && lastHeight === null && lock === null;
}
/** Unconfirmed for too long for a reimbursement to wait for it, whether or not it was out of the mempool meanwhile. */
export function isOverdue(it: Case, payment: Payment): boolean {
  return isUnconfirmed(payment) && timeOf(it, payment) >= overdueAt(payment);
}
function overdueAt({ seenAtMs }: Payment): number {
  return seenAtMs + UNBOOKED_GONE_MS;
}
/** A booked payment that is conflicted, or nowhere for ten minutes (rule 17). */
export function isLost(it: Case, payment: Payment): boolean {
  return isBooked(payment) && (payment.state === 'conflicted' || goneForMs(it, payment) >= BOOKED_GONE_MS);
}

/**
 * Whether any observer saw it by 60 s after the window; or, after an outage of ours, our first pass finds it in the mempool or in a block
 * dated by 2 h after the window.
 */
export function isOnTime(transaction: CaseTransaction, payment: Payment): boolean {
  const deadline = transaction.windowEndsAtMs + GRACE_MS;
  if (payment.seenAtMs <= deadline) return true;
  const evidenceMs = payment.foundMined && payment.blockTimeMs !== null ? payment.blockTimeMs : payment.seenAtMs;
  return payment.caughtUpAtMs < deadline && evidenceMs <= transaction.windowEndsAtMs + OUTAGE_GRACE_MS;
}

/** 24 hours after a transaction was created (rule 8). */
export function dayAfterCreation(transaction: CaseTransaction): number {
  return transaction.windowEndsAtMs - WINDOW_MS + LOOKUP_AFTER_MS;
}

/** Whether a block is dated more than 24 h after the window (rule 24). */
export function isAfterDay(transaction: CaseTransaction, block: { readonly timeMs: number }): boolean {
  return block.timeMs > transaction.windowEndsAtMs + LATE_BLOCK_AFTER_MS;
}

/** The tolerance in USD: the merchant's percentage, at most 5 USD; in ten-thousandths of a cent, so that nothing is rounded. */
export function toleranceUsd({ usdMinor, toleranceBps }: CaseTransaction): bigint {
  return least(basisPointsExact(usdMinor, toleranceBps), basisPointsExact(MAX_TOLERANCE_USD_MINOR, WHOLE_BPS));
}
type Priced = Pick<CaseTransaction, 'amountDue' | 'toleranceBps' | 'currency' | 'rate'>;
/** The tolerance in the transaction's currency: the merchant's percentage of the amount due, at most what 5 USD buy at the quote. */
export function tolerance(transaction: Priced): bigint {
  return least(
    basisPointsDown(transaction.amountDue, transaction.toleranceBps),
    cryptoForUsdDown(MAX_TOLERANCE_USD_MINOR, transaction.currency, transaction.rate),
  );
}
/** amount due − tolerance. */
export function sufficientAmount(transaction: Priced): bigint {
  return minus(transaction.amountDue, tolerance(transaction));
}

/** The payments in the transaction's currency that the rules have taken note of and that are in the mempool or the best chain. */
export function presentInQuotedCurrency(it: Case): Payment[] {
  return it.payments.filter((payment) => inQuotedCurrency(it, payment) && payment.present && isLive(payment));
}
/** The part of a payment that is late. */
export function lateMinor(payment: Payment): bigint {
  return minus(payment.amount, payment.onTimeMinor);
}

/**
 * Rule 23: late payments of a pending transaction count when together they complete amount due − tolerance and were worth the missing
 * dollars when they arrived. Null = a rate of arrival is not known yet.
 * @param among the payments to consider: for a credit only those that have their required depth, because otherwise a payment that never
 * confirms
 *   could complete the price for one that does
 */
export function lateCounts(it: Case, among: readonly Payment[]): boolean | null {
  const { amountDue, currency, rate } = it.transaction;
  const open = among.filter((payment) => !isBooked(payment));
  const missing = atLeastZero(minus(amountDue, sum(open.map((payment) => payment.onTimeMinor))));
  const late = open.filter((payment) => lateMinor(payment) > 0n);
  if (late.length === 0 || missing <= tolerance(it.transaction)) return false;
  if (sum(late.map(lateMinor)) < minus(missing, tolerance(it.transaction))) return false;
  const parts = valued(late, lateMinor);
  return parts === null ? null : isWorth(parts, currency, { minor: missing, rate }, toleranceUsd(it.transaction));
}

/** These payments (or a part of each) with the rates at which they are valued; null when one of them is not valued yet. */
export function valued(payments: readonly Payment[], part: (payment: Payment) => bigint): Valued[] | null {
  const parts: Valued[] = [];
  for (const payment of payments) {
    if (payment.valueRate === null) return null;
    parts.push({ minor: part(payment), rate: payment.valueRate });
  }
  return parts;
}

/** The part of a payment that counts towards the amount due: the part that is on time, and the late part where rule 23 allows it. */
export function countingMinor(payment: Payment, late: boolean): bigint {
  return late ? payment.amount : payment.onTimeMinor;
}

/**
 * When, on its own chain's clock, a payment that is gone will be lost (rule 17) or withdrawn (rules 6, 15), or one for whose first confirmation
 * a reimbursement waits is overdue; null when no time matters. While the node is below the height where it was last seen, the judge waits for
 * that height instead.
 */
export function nextTime(it: Case, payment: Payment): number | null {
  const times: number[] = [];
  if (payment.state === 'gone' && payment.goneSinceMs !== null && (isBooked(payment) || payment.classified))
    times.push(payment.goneSinceMs + (isBooked(payment) ? BOOKED_GONE_MS : UNBOOKED_GONE_MS));
  if (isUnconfirmed(payment) && it.refunds.some((refund) => !refund.isHeld && refund.shares.has(payment.id)))
    times.push(overdueAt(payment));
  const ahead = times.filter((at) => at > timeOf(it, payment));
  return ahead.length === 0 ? null : Math.min(...ahead);
}

/**
 * The payments that count: of a pending transaction those on time, and the late ones that rule 23 allows; afterwards those that are
 * credited, also while one of them is briefly out of the chain.
 */
export function countingPayments(it: Case): readonly Payment[] {
  if (it.transaction.status !== 'pending') return it.payments.filter((payment) => payment.credited > 0n);
  const right = presentInQuotedCurrency(it);
  const late = lateCounts(it, right) === true;
  return right.filter((payment) => countingMinor(payment, late) > 0n);
}

/**
 * Marks for every payment whether it counts; a payment in another currency than the transaction's never does, nor what a block of Ethereum's
 * chain pays, nor a coinbase output before it is mature.
 */
export function noteCounting(it: Case, counting: readonly Payment[]): void {
  const among = new Set(counting);
  for (const payment of it.payments) {
    payment.counted = among.has(payment) && inQuotedCurrency(it, payment) && isLive(payment) && !isImmature(it, payment);
  }
}

const COUNTING_STATUSES: ReadonlySet<string> = new Set(['pending', 'confirmed', 'succeeded', 'settled', 'reimbursed']);

/**
 * The payment from which confirmations are shown: the youngest that counts, and in review and declined the youngest of all that are there.
 * Null = 0.
 */
export function youngestCounting(
  it: Case,
  counting: readonly Payment[],
): { height: number; currency: Payment['currency'] } | null {
  const live = it.payments.filter(isLive);
  let shown: readonly Payment[] =
    it.transaction.status === 'review' || it.transaction.status === 'declined'
      ? live
      : live.filter((payment) => inQuotedCurrency(it, payment));
  if (COUNTING_STATUSES.has(it.transaction.status))
    shown = counting.filter((payment) => inQuotedCurrency(it, payment) && !(isLive(payment) && isImmature(it, payment)));
  let youngest: Payment | null = null;
  for (const payment of shown) {
    if (payment.height === null) return null;
    if (youngest === null || confirmationsOf(it, payment) < confirmationsOf(it, youngest)) youngest = payment;
  }
  return youngest === null || youngest.height === null ? null : { height: youngest.height, currency: youngest.currency };
}

/** Σ of the payments in the transaction's currency on the best chain or in the mempool. */
export function received(it: Case): bigint {
  let total = 0n;
  for (const payment of it.payments) if (inQuotedCurrency(it, payment) && isLive(payment)) total = plus(total, payment.amount);
  return total;
}
/** What of these payments lies in suspense, in minor units. They must be of one currency. */
export function suspenseOf(payments: readonly Payment[]): bigint {
  return sum(payments.map((payment) => payment.inSuspense));
}
