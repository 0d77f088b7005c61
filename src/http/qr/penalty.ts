// How badly a masked QR code can be read (ISO/IEC 18004:2024 §7.8.3), for whole words of modules at a time. A word holds 32 columns of a
// row, of which the first 22 are its own: every pattern that begins in them, at most 11 long, lies within the word.

const OWN = 22;
const LONGEST = 11;

/** How a square of modules is stored in words, and in which bits a run of two, five or eleven may begin. */
export type Grid = {
  readonly size: number;
  readonly stripes: number;
  /** Words of the whole square: one stripe of 22 columns after the other, each row by row. */
  readonly words: number;
  readonly own: Int32Array;
  readonly two: Int32Array;
  /** Not only of a word's own bits: the next bit shows where a run ends. */
  readonly five: Int32Array;
  readonly eleven: Int32Array;
  readonly candidate: Int32Array;
};

/** The grid of a square of `size` modules a side. */
export function gridOf(size: number): Grid {
  const stripes = Math.ceil(size / OWN);
  const starts = (bits: number, length: number) =>
    Int32Array.from({ length: stripes }, (_, stripe) => {
      let word = 0;
      for (let bit = 0; bit < bits; bit++) if (stripe * OWN + bit + length <= size) word |= 1 << bit;
      return word;
    });
  return {
    size,
    stripes,
    words: stripes * size,
    own: starts(OWN, 1),
    two: starts(OWN, 2),
    five: starts(32 - 5, 5),
    eleven: starts(OWN, LONGEST),
    candidate: new Int32Array(stripes * size),
  };
}

/** Packs modules (row after row, 1 is black) into words. */
export function wordsOf(grid: Grid, modules: Uint8Array, into: Int32Array): Int32Array {
  const { size, stripes } = grid;
  for (let stripe = 0, at = 0; stripe < stripes; stripe++) {
    const first = stripe * OWN;
    const bits = Math.min(32, size - first);
    for (let y = 0; y < size; y++) {
      const from = y * size + first;
      let word = 0;
      for (let bit = 0; bit < bits; bit++) word |= (modules[from + bit] as number) << bit;
      into[at++] = word;
    }
  }
  return into;
}

const COUNTS = Uint8Array.from({ length: 1 << LONGEST }, (_, value) => {
  let count = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) count++;
  return count;
});
/** How many of 22 bits are set. */
function count(word: number): number {
  return (COUNTS[word & 2047] as number) + (COUNTS[word >>> 11] as number);
}

/**
 * Table 11's four rules on the masked square, without a quiet zone and with light format information.
 * @param limit stops counting once the penalty reaches this
 */
export function penalty(grid: Grid, words: Int32Array, mask: Int32Array, limit: number): number {
  const { size, stripes, candidate } = grid;
  for (let i = 0; i < candidate.length; i++) candidate[i] = (words[i] as number) ^ (mask[i] as number);
  let score = 0;
  let dark = 0;
  for (let stripe = 0; stripe < stripes; stripe++) {
    const own = grid.own[stripe] as number;
    const two = grid.two[stripe] as number;
    const five = grid.five[stripe] as number;
    const from = stripe * size;
    // of the last four rows, where a module equals the one below
    let below1 = 0;
    let below2 = 0;
    let below3 = 0;
    let runsAbove = 0;
    let word = candidate[from] as number;
    let right = ~(word ^ (word >>> 1));
    for (let y = 0; ; ) {
      dark += count(word & own);
      const pairs = right & (right >>> 1);
      const runs = pairs & (pairs >>> 2) & five;
      if (runs !== 0) score += count(runs & own) + 2 * count(runs & ~(runs >>> 1) & own);
      if (++y === size) break;
      const next = candidate[from + y] as number;
      const nextRight = ~(next ^ (next >>> 1));
      const below = ~(word ^ next);
      score += 3 * count(below & right & nextRight & two);
      const down = below & below1 & below2 & below3 & own;
      if (down !== 0) score += count(down) + 2 * count(down & ~runsAbove);
      runsAbove = down;
      below3 = below2;
      below2 = below1;
      below1 = below;
      word = next;
      right = nextRight;
    }
  }
  const all = size * size;
  score += 10 * Math.ceil(Math.max(0, Math.abs(dark * 100 - all * 50) - all * 5) / (all * 5));
  return score >= limit ? score : score + 40 * finders(grid);
}

/** Patterns that look like a finder: 1011101 with four light modules after or before it, in rows and in columns. */
function finders(grid: Grid): number {
  const { size, stripes, candidate } = grid;
  let found = 0;
  for (let stripe = 0; stripe < stripes; stripe++) {
    const own = grid.own[stripe] as number;
    const eleven = grid.eleven[stripe] as number;
    const from = stripe * size;
    for (let y = 0; y < size; y++) {
      const at = from + y;
      const r0 = candidate[at] as number;
      const across = r0 & ~(r0 >>> 1) & (r0 >>> 2) & (r0 >>> 3) & (r0 >>> 4) & ~(r0 >>> 5) & (r0 >>> 6);
      if (across !== 0) {
        const light = ~r0 & ~(r0 >>> 1) & ~(r0 >>> 2) & ~(r0 >>> 3);
        found += count(across & (light >>> 7) & eleven) + count((across >>> 4) & light & eleven);
      }
      if (y > size - 7) continue;
      let down = r0 & ~(candidate[at + 1] as number) & (candidate[at + 2] as number) & (candidate[at + 3] as number) & own;
      if (down === 0) continue;
      down &= (candidate[at + 4] as number) & ~(candidate[at + 5] as number) & (candidate[at + 6] as number);
      if (down === 0) continue;
      if (y >= 4) found += count(down & ~fourRows(candidate, at - 4));
      if (y <= size - LONGEST) found += count(down & ~fourRows(candidate, at + 7));
    }
  }
  return found;
}

/** The modules that are black in any of four rows. */
function fourRows(rows: Int32Array, at: number): number {
  return (rows[at] as number) | (rows[at + 1] as number) | (rows[at + 2] as number) | (rows[at + 3] as number);
}
