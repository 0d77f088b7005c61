// When the watcher of the Lightning node looks for invoices that end, and when it writes how far it has read: when something falls due, and
// otherwise now and then, as a sign of life.
import type { LightningCondition } from '../../core/lightning/port.ts';

/** The pause after a pass that left something to do, or of a worker that stands by. */
const UNDONE_REST_MS = 1_000;
const REST_MS = 5_000;
const LEAST_REST_MS = 20;
const SPREAD = 0.1;
/** How often what has not changed is written. */
const SIGN_OF_LIFE_MS = 20_000;
/** An invoice that is made after a look falls due later than this after it. */
const LONGEST_UNLOOKED_MS = 60_000;

export type ReadSchedule = {
  /** The next time at which a transaction is due; null when none is. */
  expect(dueAtMs: number | null): void;
  /** Whether an invoice may have fallen due since the last look at them. */
  mayBeDue(nowMs: number): boolean;
  /** No invoice is due at this time; the first that is known falls due at `nextMs`. */
  looked(atMs: number, nextMs: number | null): void;
  /** Whether the time up to which is read must be written. */
  mustWrite(nowMs: number): boolean;
  /** It was written. */
  wrote(atMs: number): void;
  /** Whether what the node says of itself must be written. */
  isNews(said: LightningCondition, atMs: number): boolean;
  recorded(said: LightningCondition, atMs: number): void;
  /** How many milliseconds until the next pass is useful. */
  restMs(nowMs: number, chance: number): number;
  /** The last pass did not read to the end. */
  stopped(): void;
  /** Another process may have written. */
  forget(): void;
};

/** A schedule of which everything is due: nothing was looked at or written yet. */
export function createReadSchedule(): ReadSchedule {
  let dueAtMs: number | null = null;
  /** The last look at what ends, and when the next is needed. */
  let look: { readonly atMs: number; readonly nextMs: number } | null = null;
  /** The time that was written last; null = what was read since has not been written. */
  let writtenMs: number | null = null;
  let recorded: { readonly what: string; readonly atMs: number } | null = null;

  const what = (said: LightningCondition): string => (said.state === 'ready' ? said.state : `${said.state} ${said.reason}`);
  const stopped = (): void => {
    writtenMs = null;
  };
  return {
    expect(nextMs) {
      dueAtMs = nextMs;
    },
    // a clock that was set back is looked at anew
    mayBeDue: (nowMs) => look === null || nowMs >= look.nextMs || nowMs < look.atMs,
    looked(atMs, nextMs) {
      look = { atMs, nextMs: Math.min(nextMs ?? Number.POSITIVE_INFINITY, atMs + LONGEST_UNLOOKED_MS) };
    },
    mustWrite(nowMs) {
      const isDue = dueAtMs !== null && dueAtMs <= nowMs && (writtenMs === null || writtenMs < dueAtMs);
      return isDue || writtenMs === null || Math.abs(nowMs - writtenMs) >= SIGN_OF_LIFE_MS;
    },
    wrote(atMs) {
      writtenMs = atMs;
      if (recorded !== null) recorded = { ...recorded, atMs };
    },
    isNews: (said, atMs) =>
      recorded === null || recorded.what !== what(said) || Math.abs(atMs - recorded.atMs) >= SIGN_OF_LIFE_MS + 2 * REST_MS,
    recorded(said, atMs) {
      recorded = { what: what(said), atMs };
      if (said.state !== 'ready') stopped();
    },
    restMs(nowMs, chance) {
      const most = (writtenMs === null ? UNDONE_REST_MS : REST_MS) * (1 - SPREAD * chance);
      const due = [look?.nextMs, dueAtMs].filter((time) => time !== null && time !== undefined && time > nowMs) as number[];
      return Math.max(LEAST_REST_MS, Math.min(most, ...due.map((time) => time - nowMs + 1)));
    },
    stopped,
    forget() {
      look = null;
      recorded = null;
      stopped();
    },
  };
}
