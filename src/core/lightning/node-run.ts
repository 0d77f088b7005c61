// Whether a Lightning node has run on between two looks at it. One that was started, or whose machine was put back with its memory, may have an older state
// than before.

/** A channel, and since when the node counts it, by our clock: from its own start, or from when it was opened. */
export type CountedChannel = { readonly point: string; readonly fromMs: number };

/** Since when a node has been running, and at which look that was first seen, both by our clock. */
export type NodeRun = { readonly startedAtMs: number; readonly startSeenAtMs: number };

/** What is read of since when something is counted differs by less than this from one time to the next. */
const SAME_START_MS = 10_000;
/** How far our clock may have been set back. */
const CLOCK_SET_MS = 3_600_000;
/** LND asks the other side of each connection every minute whether it is there, and waits half a minute: until then one that has broken looks usable. */
const MET_MS = 120_000;

/** Whether two times are those of one start. */
export const isSameStart = (aMs: number, bMs: number): boolean => Math.abs(aMs - bMs) <= SAME_START_MS;

/**
 * The run that a node is in. It has run on where it still counts, from when it did, the channel that it has counted for longest of those that it has now:
 * the one with which it began may be closed.
 * @param before what was known of it at the look before
 */
export function runOf(
  channels: readonly CountedChannel[],
  before: { readonly run: NodeRun | null; readonly channels: ReadonlyMap<string, number> },
  nowMs: number,
): NodeRun {
  let longest: { readonly knownMs: number; readonly fromMs: number } | null = null;
  for (const { point, fromMs } of channels) {
    const knownMs = before.channels.get(point);
    if (knownMs !== undefined && (longest === null || knownMs < longest.knownMs)) longest = { knownMs, fromMs };
  }
  if (before.run !== null && longest !== null && isSameStart(longest.knownMs, longest.fromMs)) return before.run;
  return { startedAtMs: channels.reduce((least, { fromMs }) => Math.min(least, fromMs), nowMs), startSeenAtMs: nowMs };
}

/** Whether the node cannot have been put back since a time: it was seen in the run that it is in well before. */
export const hasRunSince = ({ startSeenAtMs }: NodeRun, sinceMs: number): boolean => startSeenAtMs + CLOCK_SET_MS <= sinceMs;

/**
 * Whether a channel that the node calls usable is so: what a machine that is put back with its memory says of its connections is older at first. One that had
 * just been started when that was seen has made them since.
 */
export const knowsWhoIsThere = ({ startedAtMs, startSeenAtMs }: NodeRun, nowMs: number): boolean =>
  startSeenAtMs - startedAtMs < MET_MS || Math.abs(nowMs - startSeenAtMs) >= MET_MS;
