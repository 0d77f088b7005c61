// A job that runs at an interval of the service's clock, once for all workers.
import type { Context } from '../flow/context.ts';
import { failDue, finishDue, takeDue } from '../store/postgres/schedules.ts';
import { createBackoff } from './backoff.ts';
import type { Job } from './loop.ts';

export type Scheduled = {
  readonly urgent: boolean;
  /** Asked when it runs: while this is so, the run after this one is due after five times the interval. */
  readonly isAtRest?: () => boolean;
  /** Resolves to true when there is more to do at once. */
  work(): Promise<boolean>;
};

const AT_REST = 5;

/** A job that runs at an interval of the service's clock, until it has nothing left to do; once for all workers. */
export function scheduled(ctx: Context, name: string, everyMs: number, { urgent, isAtRest, work }: Scheduled): Job {
  const { clock } = ctx.ports;
  const backoff = createBackoff();
  async function run(): Promise<boolean> {
    const intervalMs = isAtRest?.() === true ? AT_REST * everyMs : everyMs;
    if (!(await takeDue(ctx.db, name, intervalMs, clock.now()))) return false;
    try {
      const more = await work();
      backoff.succeeded();
      // a job with more to do is due again at once, so that a worker can stop in between
      await finishDue(ctx.db, name, !more, clock.now());
      return more;
    } catch (error) {
      await failDue(ctx.db, name, backoff.failed(), clock.now());
      throw error;
    }
  }
  return { name, everyMs: null, urgent, run };
}
