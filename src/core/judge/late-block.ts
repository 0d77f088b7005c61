// The block with which the price of a pending transaction is complete: by its date rule 24 asks what the payments were worth then.
import { confirmationsToReach, requiredDepthsOfTiers } from '../confirmations.ts';
import { sum } from '../money.ts';
import type { Case, DatedBlock, Payment } from './case.ts';
import { chainOf, confirmationsOf, countingMinor, isAfterDay, lateCounts, sufficientAmount } from './payments.ts';
import { cutOff, depthForTransaction, lateReached } from './required-depth.ts';

/** The payments that complete the price, what they count for together, and whether late ones are among them (rule 23). */
export type Deep = { readonly payments: readonly Payment[]; readonly total: bigint; readonly late: boolean };

/** Payments with the block by which each has the depth of the price, lowest first. */
type Placed = readonly { readonly payment: Payment; readonly height: number }[];

/**
 * Rule 24: the block with which amount due − tolerance reaches the required depth, when it is dated after window + 24 h, and what had that depth by
 * then: an outage of ours must not add what came later.
 */
export function lateBlock(it: Case, { payments, late }: Deep): (DatedBlock & { readonly total: bigint }) | null {
  const placed = placedBy(it, payments);
  const height = completeAt(it, placed, late);
  // a block that we no longer keep is an old one
  const block = it.blocks.get(height);
  if (block === undefined || !isAfterDay(it.transaction, block)) return null;
  return { ...block, total: sum(upTo(placed, height).map((payment) => countingMinor(payment, late))) };
}

function placedBy(it: Case, payments: readonly Payment[]): Placed {
  const price = depthForTransaction(it);
  return payments
    .map((payment) => {
      const { tipHeight } = chainOf(it, payment);
      if (payment.height === null) return { payment, height: tipHeight };
      const known = { confirmations: confirmationsOf(it, payment), coinbase: payment.coinbase, lock: payment.lock };
      const depth = Math.max(confirmationsToReach(payment.currency, known, price), 1);
      return { payment, height: Math.min(payment.height + depth - 1, tipHeight) };
    })
    .sort((a, b) => a.height - b.height);
}

const upTo = (placed: Placed, most: number): readonly Payment[] =>
  placed.filter(({ height }) => height <= most).map(({ payment }) => payment);

/** The height by which these payments complete the price (rules 4, 23), as whoever had read each block as it came would have found. */
function completeAt(it: Case, placed: Placed, late: boolean): number {
  const payments = placed.map(({ payment }) => payment);
  const { height: least } = placed[fewestThatSuffice(it, payments, late) - 1] as Placed[number];
  if (!late) return least;
  const { currency } = it.transaction;
  const { tipHeight } = chainOf(it, payments[0] as Payment);
  // late ones need the depth of what they were worth together: it comes with a block of one of them, or as that one gets deeper
  const depths = requiredDepthsOfTiers(currency).map(({ depth }) => depth);
  const deeper = payments.flatMap(({ height }) => (height === null ? [] : depths.map((depth) => height + depth - 1)));
  const heights = new Set([...placed.map(({ height }) => height), ...deeper].filter((height) => height >= least));
  for (const height of [...heights].sort((a, b) => a - b)) {
    if (height >= tipHeight) break;
    const there = upTo(placed, height);
    const then = cutOff(it, (_, code) => (code === currency ? height : undefined));
    if (lateReached(then, there) && lateCounts(it, there) === true) return height;
  }
  return tipHeight;
}

/**
 * How many of these payments, from the first on, complete the price (rules 4, 23); all of them do. Each one more brings it nearer, so that half
 * of what is left need not be looked at each time: there may be thousands.
 */
function fewestThatSuffice(it: Case, payments: readonly Payment[], late: boolean): number {
  let [below, enough] = [0, payments.length];
  while (enough - below > 1) {
    const middle = (below + enough) >> 1;
    const first = payments.slice(0, middle);
    const total = sum(first.map((payment) => countingMinor(payment, late)));
    // late ones that were not worth the missing dollars when they arrived count for nothing
    if (late ? lateCounts(it, first) === true : total >= sufficientAmount(it.transaction)) enough = middle;
    else below = middle;
  }
  return enough;
}
