// Jobs that run at intervals of the service's clock, once for all workers together, and everything else with a time: what is due now, and
// what next.
import type { PaymentMethod } from '../../core/currency.ts';
import { JUDGED } from '../transactions/due.ts';
import type { Sql } from './connect.ts';

/** A job taken by a worker that died is free again after this time, or earlier when it is due again. */
const LOST_AFTER = '10 minutes';

/** A job whose time is this far ahead of now was taken before the service's clock was set back. */
const CLOCK_SLACK = '1 minute';

/** SQL for whether a job (row `s`) is due. */
function isDue(everyMs: string, now: string): string {
  const every = `make_interval(secs => ${everyMs}::float8 / 1000)`;
  return `(s.taken_at > ${now} + interval '${CLOCK_SLACK}'
           or s.taken_at <= ${now} - case when s.finished_at is null then least(interval '${LOST_AFTER}', ${every}) else ${every} end)`;
}

/** Takes a job that is due; false when it is not, or another worker has it. An interval that was changed counts from the next time on. */
export async function takeDue(sql: Sql, name: string, everyMs: number, nowMs: number): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'take_due_job',
    text: `insert into schedules as s (name, every_ms, taken_at) values ($1, $2, $3)
             on conflict (name) do update set every_ms = excluded.every_ms, taken_at = excluded.taken_at, finished_at = null
              where ${isDue('least(s.every_ms, excluded.every_ms)', 'excluded.taken_at')}`,
    values: [name, everyMs, new Date(nowMs)],
  });
  return rowCount === 1;
}

/** The job that was taken is done; one that has more to do is due again at once. */
export async function finishDue(sql: Sql, name: string, done: boolean, nowMs: number): Promise<void> {
  await sql.query({
    name: 'finish_due_job',
    text: `update schedules set finished_at = $3, taken_at = case when $2 then taken_at else '-infinity' end where name = $1`,
    values: [name, done, new Date(nowMs)],
  });
}

/** The job that was taken has failed: it is due again after this pause, or at its interval when that is shorter. */
export async function failDue(sql: Sql, name: string, pauseMs: number, nowMs: number): Promise<void> {
  await sql.query({
    name: 'fail_due_job',
    text: `update schedules set finished_at = $3, taken_at = $3::timestamptz - make_interval(secs => greatest(0, every_ms - $2::float8) / 1000)
             where name = $1`,
    values: [name, pauseMs, new Date(nowMs)],
  });
}

/** Makes the jobs whose names begin like this due now, except running ones. */
export async function makeDue(sql: Sql, prefix: string): Promise<void> {
  await sql.query({
    name: 'make_job_due',
    text: `update schedules set taken_at = '-infinity' where starts_with(name, $1) and finished_at is not null`,
    values: [prefix],
  });
}

export type Outlook = {
  /** A transaction is due for the judge. */
  readonly isDue: boolean;
  readonly chains: ReadonlyMap<PaymentMethod, ChainOutlook>;
  /** The jobs of this table that are due. */
  readonly jobs: readonly string[];
  /** When the next job of this table falls due; null when there is none. */
  readonly nextJobMs: number | null;
};
export type ChainOutlook = {
  /** When the next thing falls due on the chain's own clock; null when nothing will. */
  readonly nextDueMs: number | null;
  /** Rule 8 wants a look-up. */
  readonly lookupWanted: boolean;
};

/** What is due now, and when the next thing will be: in one statement, so that asking often is cheap. */
export async function readOutlook(sql: Sql, nowMs: number): Promise<Outlook> {
  const { rows } = await sql.query<{
    is_due: boolean;
    jobs: string[];
    next_job: Date | null;
    currency: PaymentMethod | null;
    next_due: Date | null;
    lookup_wanted: boolean;
  }>({
    name: 'read_outlook',
    text: `
      select o.is_due, o.jobs, o.next_job, n.currency, least(t.next, p.next) as next_due,
             exists (select 1 from transactions where currency = n.currency and lookup_wanted) as lookup_wanted
        from (select not (${JUDGED}) as is_due,
                     (select coalesce(array_agg(s.name), '{}') from schedules s where ${isDue('s.every_ms', '$1::timestamptz')}) as jobs,
                     (select min(s.taken_at + make_interval(secs => s.every_ms::float8 / 1000)) from schedules s
                       where s.taken_at + make_interval(secs => s.every_ms::float8 / 1000) > $1) as next_job) o
        left join chain_cursors n on true
        left join lateral (select min(due_at) as next from transactions where currency = n.currency and due_at > n.caught_up_at) t on true
        left join lateral (select min(due_at) as next from payments where currency = n.currency and due_at > n.caught_up_at) p on true`,
    values: [new Date(nowMs)],
  });
  const chains = new Map<PaymentMethod, ChainOutlook>();
  for (const { currency, next_due, lookup_wanted: lookupWanted } of rows)
    if (currency !== null) chains.set(currency, { nextDueMs: next_due?.getTime() ?? null, lookupWanted });
  const [row] = rows;
  return { isDue: row?.is_due ?? false, chains, jobs: row?.jobs ?? [], nextJobMs: row?.next_job?.getTime() ?? null };
}
