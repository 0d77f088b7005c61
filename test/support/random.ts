// Random whole numbers that can be repeated (mulberry32): the same seed gives the same numbers for ever, whatever library is installed.

/** Whole 32-bit numbers. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Whole numbers from 0 to the one before `below`. */
export function randomBelow(seed: number): (below: number) => number {
  const next = mulberry32(seed);
  return (below) => next() % below;
}
