// A transaction that was paid in very many outputs is judged in portions: each verdict notes, books or takes back some of them, as if the others
// had come a moment later. What asks for all payments (enough, too little, nothing, accepted, final) waits until none is left.
import type { Case } from './case.ts';

/** As many of these as this verdict has room for, from the first; notes when some are left. */
export function portion<T>(it: Case, list: readonly T[]): readonly T[] {
  if (it.room === undefined) return list;
  const taken = list.slice(0, Math.max(0, it.room));
  it.room -= taken.length;
  if (taken.length < list.length) it.more = true;
  return taken;
}

/** A rule that asks for all payments. */
export function ofAll(rule: (it: Case) => boolean): (it: Case) => boolean {
  return (it) => it.more !== true && rule(it);
}
