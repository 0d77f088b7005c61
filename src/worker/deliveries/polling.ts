// While many events are written, the worker looks for deliveries at an interval, and commits need not tell it: each notification is a lock that
// all such commits take in turn, and wakes every process that listens. A lock says that it looks (deliver_events reads it).
// Nothing is missed when that ends: whoever saw the lock has been writing events since before it was released, so what they wrote is looked for
// once they all have ended. A worker begins with it, since nobody told it of what was written under the one before.
import { POLLED_LOCK } from '../../store/deliveries/deliveries.ts';
import { eventWriters, lastEventNumber } from '../../store/deliveries/event-tail.ts';
import type { Database } from '../../store/postgres/connect.ts';

const LOOK_MS = 10;
/** How often it is counted how many events were written. */
const COUNTED_MS = 100;
/** What was counted longer ago says nothing of now. */
const STALE_MS = 1_000;
/** Events a second, of all merchants. */
const BEGINS_AT = 200;
const ENDS_BELOW = 100;
/** Somebody else holds the lock: a worker's session that is about to end. */
const LONGEST_RETRY_MS = 1_000;

export type Polling = {
  /**
   * For the worker that delivers, before it looks or does not. Returns whether it must look: nobody tells it of what was written before.
   * @param isTold whether something has told it
   */
  update(isTold: boolean): Promise<boolean>;
  /** Milliseconds until the next look; infinite = when told. */
  pauseMs(): number;
  /** The session of the lock has broken, or another worker delivers now. */
  lost(): void;
  /** Commits tell whoever listens. */
  end(): Promise<void>;
};

type State =
  /** The worker does not deliver. */
  | { readonly kind: 'none' }
  /** It could not take the lock yet. */
  | { readonly kind: 'beginning'; readonly retryMs: number }
  | { readonly kind: 'polling' }
  /** Released; these may not have told. */
  | { readonly kind: 'ending'; readonly writers: readonly string[] }
  | { readonly kind: 'told' };

/** Of one worker process. @param db its session holds the lock, as it holds the one by which one worker of all delivers */
export function createPolling(db: Pick<Database, 'query' | 'sessionLock'>): Polling {
  const lock = db.sessionLock(POLLED_LOCK);
  let state: State = { kind: 'none' };
  let counted = { atMs: Number.NEGATIVE_INFINITY, number: 0n };

  /** Events a second since it was counted last; null: that was just now, or long ago. */
  async function rate(): Promise<number | null> {
    const sinceMs = performance.now() - counted.atMs;
    if (sinceMs < COUNTED_MS) return null;
    const before = counted.number;
    counted = { atMs: performance.now(), number: await lastEventNumber(db) };
    return sinceMs > STALE_MS ? null : (Number(counted.number - before) * 1_000) / sinceMs;
  }

  /** It was lost meanwhile, if it is in another state than before. */
  function turn(before: State, next: State): void {
    if (state === before) state = next;
  }

  async function begin(before: State): Promise<void> {
    const retryMs = before.kind === 'beginning' ? Math.min(2 * before.retryMs, LONGEST_RETRY_MS) : LOOK_MS;
    const isHeld = await lock.acquire();
    turn(before, isHeld ? { kind: 'polling' } : { kind: 'beginning', retryMs });
    // lost meanwhile, and taken in another session: whoever delivers now would not be told
    if (isHeld && state.kind !== 'polling') await lock.release();
  }

  async function end(before: State): Promise<void> {
    await lock.release();
    turn(before, { kind: 'ending', writers: await eventWriters(db) });
  }

  /** Returns whether all that may not have told are over. */
  async function isOver(before: State & { readonly kind: 'ending' }): Promise<boolean> {
    const open = new Set(await eventWriters(db));
    const writers = before.writers.filter((one) => open.has(one));
    turn(before, writers.length === 0 ? { kind: 'told' } : { kind: 'ending', writers });
    return writers.length === 0;
  }

  return {
    async update(isTold) {
      const before = state;
      if (before.kind === 'none' || before.kind === 'beginning') {
        await begin(before);
        return true;
      }
      if (before.kind === 'ending') return isOver(before);
      if (before.kind === 'told') {
        if (isTold && ((await rate()) ?? 0) >= BEGINS_AT) await begin(before);
      } else if (((await rate()) ?? BEGINS_AT) < ENDS_BELOW) await end(before);
      return false;
    },
    pauseMs() {
      if (state.kind === 'none' || state.kind === 'told') return Number.POSITIVE_INFINITY;
      return state.kind === 'beginning' ? state.retryMs : LOOK_MS;
    },
    lost() {
      state = { kind: 'none' };
    },
    async end() {
      await lock.release();
      state = { kind: 'none' };
    },
  };
}
