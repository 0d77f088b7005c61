// What was lost, and the payouts that may ask for it again: each goes with one of the others at most.

/** @param rules in order: only what none of the earlier ones has paired is tried by the next */
export function pairUp<Lost, Waiting>(
  lost: readonly Lost[],
  waiting: readonly Waiting[],
  rules: readonly ((one: Waiting, lost: Lost) => boolean)[],
): readonly (readonly [Lost, Waiting])[] {
  const free = new Set(waiting);
  const left = new Set(lost);
  const pairs: [Lost, Waiting][] = [];
  for (const rule of rules)
    for (const of of left) {
      const one = [...free].find((each) => rule(each, of));
      if (one === undefined) continue;
      free.delete(one);
      left.delete(of);
      pairs.push([of, one]);
    }
  return pairs;
}
