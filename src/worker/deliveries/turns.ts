// Whose turn it is to be given some of what waits: endpoints that this worker has not met come first, the newest before the others, since it
// may be the only one that is there; then all others one after the other.
import { type Pace, restMs } from './pace.ts';

/** Endpoints that are filled up at once; the others have their turn after them. */
const ENDPOINTS_AT_ONCE = 256;

export type Known = { readonly pace: Pace; readonly queue: readonly unknown[] };

export type Turns<E extends Known> = {
  /** A look has found what is due: everybody has a turn again. */
  begin(): void;
  /**
   * Of the endpoints with something due, in the order of their numbers, those that have nothing left to begin, or soon will.
   * @param known those that this worker has met
   */
  choose(
    due: readonly bigint[],
    known: ReadonlyMap<bigint, E>,
    nowMs: number,
  ): {
    readonly chosen: readonly bigint[];
    /** More have their turn before the next look. */
    readonly areLeft: boolean;
    /** Milliseconds until the first of those that rest may be tried; infinite = none rests. */
    readonly restMs: number;
  };
};

/** The turns of one worker process. @param takes how many of what waits for an endpoint are given to it at a time */
export function createTurns<E extends Known>(takes: (endpoint: E) => number): Turns<E> {
  /** The endpoint that had its turn last. */
  let last = 0n;
  let sinceBegun = 0;
  /** Had their turn as those that were not met; who is gone is not met by it. */
  const met = new Set<bigint>();
  return {
    begin() {
      sinceBegun = 0;
      met.clear();
    },
    choose(due, known, nowMs) {
      const unmet: bigint[] = [];
      const hungry: bigint[] = [];
      let shortestMs = Number.POSITIVE_INFINITY;
      for (const number of due) {
        const endpoint = known.get(number);
        if (endpoint === undefined) {
          if (!met.has(number)) unmet.push(number);
          continue;
        }
        const rest = restMs(endpoint.pace, nowMs);
        if (rest > 0) shortestMs = Math.min(shortestMs, rest);
        else if (endpoint.queue.length < Math.ceil(takes(endpoint) / 2)) hungry.push(number);
      }
      const next = hungry.findIndex((number) => number > last);
      const others = next === -1 ? hungry : [...hungry.slice(next), ...hungry.slice(0, next)];
      // half of them at least are left to the others
      const first = unmet.reverse().splice(0, Math.max(ENDPOINTS_AT_ONCE / 2, ENDPOINTS_AT_ONCE - others.length));
      const inTurn = others.slice(0, ENDPOINTS_AT_ONCE - first.length);
      last = inTurn.at(-1) ?? last;
      for (const number of first) met.add(number);
      const chosen = [...first, ...inTurn];
      sinceBegun += chosen.length;
      // each once for a look: an endpoint that has nothing more than what is under way stays here
      const areLeft = unmet.length + others.length > inTurn.length && sinceBegun < due.length;
      return { chosen, areLeft, restMs: shortestMs };
    },
  };
}
