// What completes the price of a pending transaction, and with which block: by that block's date rule 24 asks what it was worth then.
import { confirmationsToReach, requiredDepthsOfTiers } from '../confirmations.ts';
import { balanceOf, chainRow } from '../currency.ts';
import { plus, sum } from '../money.ts';
import type { Rate } from '../rate.ts';
import type { TransactionStatus } from '../transaction-states.ts';
import type { Case, CaseTransaction, ChainView, Payment } from './case.ts';
import {
  confirmationsOf,
  countingMinor,
  isAfterDay,
  isBooked,
  lateCounts,
  lateMinor,
  presentInQuotedCurrency,
  sufficientAmount,
} from './payments.ts';
import { cutOff, depthForTransaction, lateReached, reachesTransaction } from './required-depth.ts';

/** The payments that complete the price, what they count for together, and whether late ones are among them (rule 23). */
export type Deep = { readonly payments: readonly Payment[]; readonly total: bigint; readonly late: boolean };

/** The payments that count and have their required depth, when they are enough; otherwise null. */
export function deepEnough(it: Case): Deep | null {
  const reached = deepForPrice(it);
  const late = lateCounts(it, reached) === true && lateReached(it, reached);
  const payments = reached.filter((payment) => countingMinor(payment, late) > 0n);
  const total = sum(payments.map((payment) => countingMinor(payment, late)));
  return total < sufficientAmount(it.transaction) ? null : { payments, total, late };
}

const notBooked = (it: Case): readonly Payment[] => presentInQuotedCurrency(it).filter((payment) => !isBooked(payment));
const deepForPrice = (it: Case): readonly Payment[] => notBooked(it).filter((payment) => reachesTransaction(it, payment));

/**
 * Rule 24: what was deep enough with the first block with which amount due − tolerance was, when that block is dated after window + 24 h, with
 * the rate of then (null = not known yet): whoever reads many blocks after an outage must find what reading each as it came would have found.
 * @param deep what is deep enough now
 */
export function deepTooLate(it: Case, deep: Deep): (Deep & { readonly rate: Rate | null }) | null {
  const [height, first] = firstDeep(it, deep);
  // a block that we no longer keep is an old one
  const block = it.blocks.get(height);
  return block === undefined || !isAfterDay(it.transaction, block) ? null : { ...first, rate: block.rate };
}

/** The lowest height with which the price was complete, and what completed it. */
function firstDeep(it: Case, deep: Deep): readonly [height: number, first: Deep] {
  const { currency } = it.transaction;
  const { tipHeight } = it.chains.get(currency) as ChainView;
  const placed = placedBy(it);
  const heights = heightsOfChange(it, placed).filter((height) => height < tipHeight);
  for (const height of heights.slice(firstEnough(it, placed, heights))) {
    const first = deepEnough(cutOff(it, (_, code) => (code === currency ? height : undefined)));
    if (first !== null) return [height, first];
  }
  return [tipHeight, deep];
}

/** Payments with the height with which each has the depth of the price; nobody knows when a lock came, so what it makes deep was so at any. */
type Placed = readonly { readonly payment: Payment; readonly height: number }[];

function placedBy(it: Case): Placed {
  const price = depthForTransaction(it);
  return notBooked(it).map((payment) => {
    const { coinbase, currency, lock } = payment;
    const needed = confirmationsToReach(currency, { confirmations: confirmationsOf(it, payment), coinbase, lock }, price);
    if (needed === 0) return { payment, height: Number.NEGATIVE_INFINITY };
    return { payment, height: (payment.height ?? Number.POSITIVE_INFINITY) + needed - 1 };
  });
}

/**
 * The heights with which the price may have become complete, the lowest first: those that brought a payment its depth (one with a lock: its own
 * block), or a late one that of a tier, since rule 23 asks for the depth of what they are worth together.
 */
function heightsOfChange(it: Case, placed: Placed): readonly number[] {
  const tiers = requiredDepthsOfTiers(it.transaction.currency).map(({ depth }) => depth);
  const heights = new Set<number>();
  for (const { payment, height: deepAt } of placed) {
    const { height } = payment;
    if (height === null) continue;
    heights.add(Math.max(deepAt, height));
    if (lateMinor(payment) > 0n) for (const depth of tiers) heights.add(height + Math.max(depth, 1) - 1);
  }
  return [...heights].sort((a, b) => a - b);
}

/**
 * Where in these heights the payments with the depth of the price were first enough, whatever depth the late ones of them need together. Each
 * payment more brings the price nearer, so half of what is left need not be looked at: there may be thousands in as many blocks.
 */
function firstEnough(it: Case, placed: Placed, heights: readonly number[]): number {
  const enough = sufficientAmount(it.transaction);
  const least = heightOfAmount(placed, enough);
  let [from, to] = [heights.filter((height) => height < least).length, heights.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const reached = placed.filter(({ height }) => height <= (heights[middle] as number)).map(({ payment }) => payment);
    const onTime = sum(reached.map((payment) => payment.onTimeMinor));
    if (onTime >= enough || lateCounts(it, reached) === true) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The height with which these payments are so much, whatever of them counts. */
function heightOfAmount(placed: Placed, enough: bigint): number {
  const amounts = new Map<number, bigint>();
  for (const { payment, height } of placed) amounts.set(height, plus(amounts.get(height) ?? 0n, payment.amount));
  let total = 0n;
  for (const height of [...amounts.keys()].sort((a, b) => (a < b ? -1 : 1))) {
    total = plus(total, amounts.get(height) as bigint);
    if (total >= enough) return height;
  }
  return Number.POSITIVE_INFINITY;
}

/** The statuses from which one verdict can reach rule 4. */
const CONFIRMABLE: ReadonlySet<TransactionStatus> = new Set([
  'started',
  'pending',
  'timedout',
  'timedout_checked',
  'declined',
  'review',
]);

/**
 * The heights of the blocks whose dates {@link deepTooLate} may need: the tip's, and each with which a payment has a depth that may be asked
 * for. What is late needs the depth of what it was worth when it arrived, alone or together, so that may be any tier's.
 * @param tipHeight undefined: nothing of the chain was read
 */
export function heightsToDate(
  { status, currency }: CaseTransaction,
  payments: readonly Payment[],
  tipHeight: number | undefined,
): readonly number[] {
  const own = payments.filter((payment) => payment.currency === currency);
  if (!CONFIRMABLE.has(status) || tipHeight === undefined || own.length === 0) return [];
  const { coinbaseMaturity } = chainRow(balanceOf(currency));
  const depths = [1, ...requiredDepthsOfTiers(currency).map(({ depth }) => depth), coinbaseMaturity];
  const heights = new Set([tipHeight]);
  // thousands of payments may lie in a few blocks
  for (const height of new Set(own.map((payment) => payment.height)))
    if (height !== null) for (const depth of depths) heights.add(height + depth - 1);
  return [...heights].filter((height) => height <= tipHeight);
}
