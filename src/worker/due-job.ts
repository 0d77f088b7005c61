// The job that checks what is due: it wakes the other jobs, which have no interval of their own, and sets when each watcher must next write
// its chain's time. Changes wake the jobs directly; this job finds what became due by the clock alone.
import type { PaymentMethod } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { readOutlook } from '../store/postgres/schedules.ts';
import type { ChainWatcher } from './chain/watcher.ts';
import type { Job } from './loop.ts';

/** Another process may have written something that falls due before what this one knows of. */
const LONGEST_LOOK_MS = 8_000;
/** While something is due that is not done, or overdue on a chain whose time does not advance. */
const OVERDUE_LOOK_MS = 2_000;
/** Every decision of the judge makes a look useful: those that come within this time share one, unless a caller waits. */
const GATHER_MS = 200;
export const DUE_JOB = 'what is due';

/** @param watchers those that write their chain's time when something falls due */
export function createDueJob(ctx: Context, watchers: ReadonlyMap<PaymentMethod, Pick<ChainWatcher, 'expect'>>): Job {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let restMs = LONGEST_LOOK_MS;
  return {
    name: DUE_JOB,
    everyMs: () => restMs,
    urgent: true,
    async run(hurried = false, wake = () => undefined) {
      const gatheredMs = performance.now() - lookedMs;
      if (!hurried && gatheredMs < GATHER_MS) {
        restMs = GATHER_MS - gatheredMs;
        return false;
      }
      restMs = LONGEST_LOOK_MS;
      lookedMs = performance.now();
      const nowMs = ctx.ports.clock.now();
      const { isDue, chains, jobs, nextJobMs } = await readOutlook(ctx.db, nowMs);
      restMs =
        isDue || jobs.length > 0
          ? OVERDUE_LOOK_MS
          : restUntil([nextJobMs, ...[...chains.values()].map((chain) => chain.nextDueMs)], nowMs);
      for (const [currency, watcher] of watchers) watcher.expect(chains.get(currency)?.nextDueMs ?? null);
      if (isDue) wake('judge');
      for (const [currency, { lookupWanted }] of chains) if (lookupWanted) wake(`look-up ${currency}`);
      for (const name of jobs) wake(name);
      return false;
    },
  };
}

/** The pause until the first of these times, in milliseconds. */
function restUntil(times: readonly (number | null)[], nowMs: number): number {
  const pauses = times
    .filter((time) => time !== null)
    .map((time) => (time > nowMs ? Math.max(time - nowMs, GATHER_MS) : OVERDUE_LOOK_MS));
  return Math.min(LONGEST_LOOK_MS, ...pauses);
}
