// Waits for a node besides the one that is read: for a limited time, and with one request of each kind in progress.
import { setTimeout as delay } from 'node:timers/promises';

/** The result, or null when it takes longer than `ms`; what it fails with after that is nobody's. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const enough = new AbortController();
  work.catch(() => undefined);
  try {
    return await Promise.race([work, delay(ms, null, { signal: enough.signal }).catch(() => null)]);
  } finally {
    enough.abort();
  }
}

export type OneRequest<T> = {
  /**
   * The answer to the request in progress, or to a new one; null when none has come after `ms`. One that comes later is the answer to the
   * next question, unless it is old by then.
   */
  ask(request: () => Promise<T>, ms: number): Promise<T | null>;
  /** Whether the next answer is to a request that was made before. */
  isOld(): boolean;
  /** For how long it has not been answered, ms. */
  unansweredMs(): number;
};

type Request<T> = { readonly answer: Promise<T>; readonly beganMs: number; endedMs: number | null; isTaken: boolean };

/** What a node said longer ago says nothing about its present state. */
const KEPT_MS = 10_000;

/** Requests of one kind to one node: one that hangs is not made again beside it. */
export function createOneRequest<T extends object>(): OneRequest<T> {
  let last: Request<T> | null = null;
  function isOld(): boolean {
    if (last === null) return false;
    return last.endedMs === null || (!last.isTaken && performance.now() - last.endedMs < KEPT_MS);
  }
  function begin(request: () => Promise<T>): Request<T> {
    const begun: Request<T> = { answer: request(), beganMs: performance.now(), endedMs: null, isTaken: false };
    const end = (): void => {
      begun.endedMs = performance.now();
    };
    begun.answer.then(end, end);
    return begun;
  }
  return {
    isOld,
    unansweredMs: () => (last === null || last.endedMs !== null ? 0 : performance.now() - last.beganMs),
    async ask(request, ms) {
      if (last === null || !isOld()) last = begin(request);
      const mine = last;
      try {
        const answer = await within(mine.answer, ms);
        mine.isTaken = answer !== null;
        return answer;
      } catch (error) {
        mine.isTaken = true;
        throw error;
      }
    },
  };
}
