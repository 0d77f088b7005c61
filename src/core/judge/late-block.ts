// The block with which the price of a pending transaction is complete: by its date rule 24 asks what the payments were worth then.
import { confirmationsToReach } from '../confirmations.ts';
import { sum } from '../money.ts';
import type { Case, DatedBlock, Payment } from './case.ts';
import { chainOf, confirmationsOf, countingMinor, isAfterDay, lateCounts, lateMinor, sufficientAmount } from './payments.ts';
import { depthForLate, depthForTransaction } from './required-depth.ts';

/** The payments that complete the price, what they count for together, and whether late ones are among them (rule 23). */
export type Deep = { readonly payments: readonly Payment[]; readonly total: bigint; readonly late: boolean };

/**
 * Rule 24: the block with which amount due − tolerance reaches the required depth, when it is dated after window + 24 h, and what had that depth by
 * then: an outage of ours must not add what came later.
 */
export function lateBlock(it: Case, { payments, late }: Deep): (DatedBlock & { readonly total: bigint }) | null {
  const price = depthForTransaction(it);
  const old = depthForLate(it, payments);
  const byHeight = payments
    .map((payment) => {
      const known = { confirmations: confirmationsOf(it, payment), coinbase: payment.coinbase, lock: payment.lock };
      const needed = late && lateMinor(payment) > 0n ? [price, old] : [price];
      const depth = Math.max(...needed.map((required) => confirmationsToReach(payment.currency, known, required)));
      return {
        payment,
        height: payment.height === null ? chainOf(it, payment).tipHeight : payment.height + Math.max(depth, 1) - 1,
      };
    })
    .sort((a, b) => a.height - b.height);
  const inOrder = byHeight.map(({ payment }) => payment);
  const { height } = byHeight[fewestThatSuffice(it, inOrder, late) - 1] as (typeof byHeight)[number];
  // a block that we no longer keep is an old one
  const block = it.blocks.get(height);
  if (block === undefined || !isAfterDay(it.transaction, block)) return null;
  const then = byHeight.filter((one) => one.height <= height);
  return { ...block, total: sum(then.map((one) => countingMinor(one.payment, late))) };
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
