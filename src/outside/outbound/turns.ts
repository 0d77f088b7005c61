// Turns of merchants in a thread that computes for all of them. What one has to be computed waits for what is under way, and for those who have taken
// less; not for what others want besides: neither many calls nor dear answers of some of them hold up whoever has a few.

import { CLOCKS, type Clocks } from './handshake-costs.ts';

/** So long at a time, and one piece more; then the thread hears what has come meanwhile, for whomever it is. */
const SLICE_MS = 2;
const MOST_IN_SLICE = 64;
/** What a merchant who has taken so much less than others may take before it is their turn again: some new connections. */
const CREDIT_MS = 20;
/**
 * A piece may take so much longer than the CPU of its slice, which the system counts from one tick to the next. What goes beyond that is no doing of
 * the piece: others had the processor, or the machine was stopped.
 */
const TICK_MS = 4;
/** Whoever has taken something longest ago is forgotten. */
const MOST_KNOWN = 10_000;

export type Turns = {
  /** Does a piece of work when it is the turn of whom it is for, and after all that he had to be done before. */
  take(whom: bigint, piece: () => void): void;
  /**
   * The same for the first piece of something, which waits while he has more to be done of what has begun: where he wants more than his part, much of
   * it ends in its time and the rest does not begin, and not all of it too late.
   */
  begin(whom: bigint, piece: () => void): void;
};
/** What one has to be done. */
type Line = { readonly ofBegun: (() => void)[]; readonly toBegin: (() => void)[] };

/** @param later calls each in a later turn of the event loop, one after the other, with what follows from it at once */
export function fairTurns(
  { cpuMs, nowMs }: Clocks = CLOCKS,
  later: (step: () => void) => void = (step) => void setImmediate(step),
): Turns {
  /** What each has taken, where others had as much meanwhile; who took something last at the end. */
  const taken = new Map<bigint, number>();
  /** Of those who had their turn the one who had taken most. */
  let mostTaken = 0;
  const waiting = new Map<bigint, Line>();
  let underWay: { readonly whom: bigint; readonly beganMs: number } | null = null;
  /** Each does one piece, and the last one none: what a piece took is known when what follows from it is done too. */
  let steps = 0;
  let [isInSlice, spentMs, cpuBeforeMs] = [false, 0, 0];

  const takenBy = (whom: bigint): number => Math.max(taken.get(whom) ?? Number.NEGATIVE_INFINITY, mostTaken - CREDIT_MS);
  function addSteps(more: number): void {
    steps += more;
    for (let n = 0; n < more; n++) later(step);
  }
  function step(): void {
    steps -= 1;
    isInSlice = steps > 0;
    settle();
    if (!isInSlice) {
      spentMs = 0;
      // those who wait are not counted: what they have is done in one slice, or there is another one
      if (waiting.size > 0) addSteps(MOST_IN_SLICE + 1);
    } else if (spentMs < SLICE_MS && waiting.size > 0) doNext(next());
  }
  function settle(): void {
    if (underWay === null) return;
    const { whom, beganMs } = underWay;
    underWay = null;
    const tookMs = nowMs() - beganMs;
    spentMs += tookMs;
    const now = takenBy(whom) + (tookMs <= TICK_MS ? tookMs : Math.min(tookMs, cpuMs() - cpuBeforeMs + TICK_MS));
    taken.delete(whom);
    taken.set(whom, now);
    if (taken.size > MOST_KNOWN) taken.delete(taken.keys().next().value as bigint);
  }
  /** Who has taken least, and of several the one who waits longest. */
  function next(): bigint {
    let [found, least] = [0n, Number.POSITIVE_INFINITY];
    for (const whom of waiting.keys()) {
      const his = takenBy(whom);
      if (his < least) [found, least] = [whom, his];
    }
    return found;
  }
  function doNext(whom: bigint): void {
    const { ofBegun, toBegin } = waiting.get(whom) as Line;
    const piece = (ofBegun.shift() ?? toBegin.shift()) as () => void;
    if (ofBegun.length + toBegin.length === 0) waiting.delete(whom);
    mostTaken = Math.max(mostTaken, takenBy(whom));
    if (spentMs === 0) cpuBeforeMs = cpuMs();
    underWay = { whom, beganMs: nowMs() };
    piece();
  }
  function lineOf(whom: bigint): Line {
    const line = waiting.get(whom) ?? { ofBegun: [], toBegin: [] };
    waiting.set(whom, line);
    if (steps === 0) addSteps(2);
    else if (!isInSlice && steps <= MOST_IN_SLICE) addSteps(1);
    return line;
  }
  return {
    take: (whom, piece) => void lineOf(whom).ofBegun.push(piece),
    begin: (whom, piece) => void lineOf(whom).toBegin.push(piece),
  };
}
