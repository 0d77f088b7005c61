// The job that checks what is due: it wakes the other jobs, which have no interval of their own, and sets when each watcher must next write
// its chain's time. Changes wake the jobs directly; this job finds what became due by the clock alone.
import type { UtxoCode } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { readOutlook } from '../store/postgres/schedules.ts';
import type { ChainWatcher } from './chain-watcher.ts';
import type { Job } from './loop.ts';

const LOOK_MS = 2_000;
/** Every decision of the judge makes a look useful: those that come within this time share one, unless a caller waits. */
const GATHER_MS = 200;
export const DUE_JOB = 'what is due';

export function createDueJob(ctx: Context, watchers: ReadonlyMap<UtxoCode, ChainWatcher>): Job {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let restMs = LOOK_MS;
  return {
    name: DUE_JOB,
    everyMs: () => restMs,
    urgent: true,
    async run(hurried = false, wake = () => undefined) {
      const gatheredMs = performance.now() - lookedMs;
      restMs = LOOK_MS;
      if (!hurried && gatheredMs < GATHER_MS) {
        restMs = GATHER_MS - gatheredMs;
        return false;
      }
      lookedMs = performance.now();
      const { isDue, chains, jobs } = await readOutlook(ctx.db, ctx.ports.clock.now());
      for (const [currency, watcher] of watchers) watcher.expect(chains.get(currency)?.nextDueMs ?? null);
      if (isDue) wake('judge');
      for (const [currency, { lookupWanted }] of chains) if (lookupWanted) wake(`look-up ${currency}`);
      for (const name of jobs) wake(name);
      return false;
    },
  };
}
