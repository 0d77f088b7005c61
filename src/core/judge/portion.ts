// A transaction paid in very many outputs is judged in portions: each verdict takes note of, books or reverses some of them, as if the
// others had come a moment later. Rules that look at all payments (enough, too little, nothing, accepted, final) wait until none is left.
import type { Case } from './case.ts';

/** After so many payments a verdict lets other work run. */
export const PAYMENTS_IN_A_TURN = 2_000;

/** As many of these, from the first, as this verdict has room for; notes when some are left. */
export function portion<T>(it: Case, list: readonly T[]): readonly T[] {
  if (it.portionLeft === undefined) return list;
  const taken = list.slice(0, Math.max(0, it.portionLeft));
  it.portionLeft -= taken.length;
  if (taken.length < list.length) it.more = true;
  return taken;
}

/** A rule that looks at all payments, so it waits until none is left. */
export function ofAll<T>(rule: (it: Case) => T): (it: Case) => T | false {
  return (it) => it.more !== true && rule(it);
}
