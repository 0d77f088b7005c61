// Jobs that run every so often on the service's clock, once for all workers together. Called by the worker's jobs.
import type { Sql } from './connect.ts';

/** A worker that died in the middle does not keep a job for longer than this, nor beyond the time when it is due again. */
const LOST_AFTER = '10 minutes';

/** A job that was taken so far ahead of now was taken before the service's clock was set back. */
const CLOCK_SLACK = '1 minute';

/** Takes a job that is due; false when it is not, or another worker has it. */
export async function takeDue(sql: Sql, name: string, everyMs: number, nowMs: number): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'take_due_job',
    text: `insert into schedules as s (name, every_ms, taken_at) values ($1, $2, $3)
             on conflict (name) do update set every_ms = excluded.every_ms, taken_at = excluded.taken_at, finished_at = null
              where s.taken_at > excluded.taken_at + interval '${CLOCK_SLACK}'
                 or (s.finished_at is not null and s.taken_at <= excluded.taken_at - make_interval(secs => $2::float8 / 1000))
                 or (s.finished_at is null and s.taken_at <= excluded.taken_at - least(interval '${LOST_AFTER}', make_interval(secs => $2::float8 / 1000)))`,
    values: [name, everyMs, new Date(nowMs)],
  });
  return rowCount === 1;
}

/** The job that was taken is through; one that failed, or has more to do, is due again at once. */
export async function finishDue(sql: Sql, name: string, done: boolean, nowMs: number): Promise<void> {
  await sql.query({
    name: 'finish_due_job',
    text: `update schedules set finished_at = $3, taken_at = case when $2 then taken_at else '-infinity' end where name = $1`,
    values: [name, done, new Date(nowMs)],
  });
}

/** Makes jobs whose names begin so due now, those that are not running. */
export async function makeDue(sql: Sql, prefix: string): Promise<void> {
  await sql.query({
    name: 'make_job_due',
    text: `update schedules set taken_at = '-infinity' where starts_with(name, $1) and finished_at is not null`,
    values: [prefix],
  });
}
