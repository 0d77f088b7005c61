// What is still to be delivered, and what became of each attempt. One process at a time delivers (its session lock), so taking a delivery
// writes nothing; only its result does.
import { FAILED_HERE } from '../../core/outbound.ts';
import type { Sql } from '../postgres/connect.ts';
import { EVENT_COLUMNS, EVENT_OBJECTS, type FoundEvent, type RawEvent, storedEvent } from './events.ts';

/** The worker's job, and the name of its session lock. */
export const DELIVERIES_JOB = 'deliveries';
/** Whoever holds this session lock looks at an interval, and commits do not tell of deliveries (deliver_events names it too). */
export const POLLED_LOCK = 'deliveries polled';

/** When the first of an endpoint's deliveries is due, on the service's clock; −∞ = at once. */
export type Waiting = { readonly webhook: bigint; readonly dueAtMs: number };

/**
 * Every endpoint for which something waits, whether it is due or not, in the order of their numbers. It goes from one to the next along the
 * index. What waits for one that is gone or disabled is due at once: to be deleted.
 */
export async function waitingWebhooks(sql: Sql): Promise<readonly Waiting[]> {
  const { rows } = await sql.query<{ webhook: bigint; due_ms: number | null }>({
    name: 'waiting_webhooks',
    text: `
      with recursive each as (
        (select webhook, due_at from deliveries order by webhook, due_at limit 1)
        union all
        select n.webhook, n.due_at from each e cross join lateral (
          select webhook, due_at from deliveries where webhook > e.webhook order by webhook, due_at limit 1) n)
      select e.webhook, case when w.enabled and isfinite(e.due_at) then (extract(epoch from e.due_at) * 1000)::float8 end as due_ms
        from each e left join webhooks w on w.number = e.webhook
       order by e.webhook`,
    values: [],
  });
  return rows.map(({ webhook, due_ms }) => ({ webhook, dueAtMs: due_ms ?? Number.NEGATIVE_INFINITY }));
}

export type Wanted = {
  readonly webhook: bigint;
  readonly count: number;
  /** How many of those may be what has failed before, although something waits that was not tried yet. */
  readonly again: number;
  /** Events that are being delivered to it already. */
  readonly without: readonly bigint[];
};
export type Delivery = {
  readonly webhook: bigint;
  readonly failures: number;
  readonly asked: number;
  readonly event: FoundEvent;
};

/**
 * The deliveries that are due, of each endpoint at most as many as wanted. What has failed before has a part of them, the longest waiting first; the
 * rest is what was not tried yet, the oldest first: of two that always find something neither waits for the other.
 */
export async function dueDeliveries(sql: Sql, wanted: readonly Wanted[], nowMs: number): Promise<readonly Delivery[]> {
  const of = (which: string): string =>
    `select * from deliveries where webhook = w.webhook and ${which} and event_id <> all (w.without::bigint[]) order by webhook, due_at, event_id`;
  const [untried, again] = [of(`due_at = '-infinity'`), of(`due_at > '-infinity' and due_at <= $5`)];
  const { rows } = await sql.query<RawEvent & { webhook: bigint; failures: number; asked: number }>({
    name: 'due_deliveries',
    text: `
      select d.webhook, d.failures, d.asked, ${EVENT_COLUMNS}
        from unnest($1::bigint[], $2::int[], $3::int[], $4::text[]) with ordinality as w (webhook, count, again, without, n)
       cross join lateral (
          select * from (
            (select 1 as place, * from (${again} limit w.again) first)
            union all (select 2, * from (${untried} limit w.count) new)
            union all (select 3, * from (${again} offset w.again limit w.count) more)) lines
           order by place, due_at, event_id limit w.count) d
        join events e on e.id = d.event_id ${EVENT_OBJECTS}
       order by w.n, d.due_at, d.event_id`,
    values: [
      wanted.map(({ webhook }) => webhook),
      wanted.map(({ count }) => count),
      wanted.map(({ again: most }) => most),
      wanted.map(({ without }) => `{${without.join()}}`),
      new Date(nowMs),
    ],
  });
  return rows.map((row) => ({ webhook: row.webhook, failures: row.failures, asked: row.asked, event: storedEvent(row) }));
}

export type Attempt = {
  readonly webhook: bigint;
  readonly eventId: bigint;
  readonly atMs: number;
  readonly tookMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: Uint8Array;
  /** How many had failed before; null: it has not begun, counts as none, and changes nothing of what waits. */
  readonly failures: number | null;
  /** How often the event had been asked for again when it was sent. */
  readonly asked: number;
  readonly isDelivered: boolean;
  /** When to try again; null: it is delivered, or was the last attempt. */
  readonly againAtMs: number | null;
  /** The receiver wants nothing more. */
  readonly disables: boolean;
};

/**
 * Writes what became of attempts, all in one statement: what is over no longer waits, the rest gets its next time. A result counts only where
 * nobody has asked for the event again since it was sent, and a failure only where no other was written since: these may be written twice. The rows
 * are locked in the order of their endpoints, as {@link deliverAgain} does, so the two cannot deadlock.
 */
export async function writeAttempts(sql: Sql, attempts: readonly Attempt[]): Promise<void> {
  const inOrder = attempts.toSorted((a, b) => Number(a.webhook - b.webhook) || Number(a.eventId - b.eventId));
  // deleting and changing are two walks over the rows: where there is only one of them, its own order will do
  const isMixed = new Set(attempts.map(({ againAtMs }) => againAtMs === null)).size > 1;
  const [locked, each] = isMixed
    ? [
        `locked as materialized (
        select d.webhook, d.event_id from deliveries d join made a using (webhook, event_id) order by d.webhook, d.event_id for update of d),`,
        'locked l join made a using (webhook, event_id)',
      ]
    : ['', 'made a'];
  await sql.query({
    name: isMixed ? 'write_mixed_attempts' : 'write_attempts',
    text: `
      with made as materialized (
        select * from unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::int[], $5::smallint[], $6::text[], $7::bytea[], $8::timestamptz[], $9::bool[], $10::smallint[], $11::bool[], $12::int[])
          as a (webhook, event_id, at, took_ms, status, error, answer, again_at, disables, failures, is_delivered, asked)),
      noted as (
        insert into delivery_attempts (webhook, event_id, at, took_ms, status, error, answer)
          select webhook, event_id, at, took_ms, status, error, answer from made),
      ${locked}
      over as (
        delete from deliveries d using ${each}
         where a.again_at is null and d.webhook = a.webhook and d.event_id = a.event_id and d.asked = a.asked and (a.is_delivered or d.failures = a.failures)),
      again as (
        update deliveries d set due_at = a.again_at, failures = d.failures + 1
          from ${each} where a.again_at is not null and d.webhook = a.webhook and d.event_id = a.event_id and d.asked = a.asked and d.failures = a.failures)
      update webhooks set enabled = false where enabled and number in (select webhook from made where disables)`,
    values: [
      inOrder.map((one) => one.webhook),
      inOrder.map((one) => one.eventId),
      inOrder.map((one) => new Date(one.atMs).toISOString()),
      inOrder.map((one) => one.tookMs),
      inOrder.map((one) => one.status),
      inOrder.map((one) => one.error),
      inOrder.map((one) => Buffer.from(one.answer)),
      inOrder.map((one) => (one.againAtMs === null ? null : new Date(one.againAtMs).toISOString())),
      inOrder.map((one) => one.disables),
      inOrder.map((one) => one.failures),
      inOrder.map((one) => one.isDelivered),
      inOrder.map((one) => one.asked),
    ],
  });
}

export type Outcome = { readonly atMs: number; readonly tookMs: number; readonly status: number | null };

/** Of each endpoint its last attempts that say something of it, the oldest first. */
export async function lastOutcomes(
  sql: Sql,
  webhooks: readonly bigint[],
  limit: number,
): Promise<ReadonlyMap<bigint, readonly Outcome[]>> {
  const { rows } = await sql.query<{ webhook: bigint; at: Date; took_ms: number; status: number | null }>({
    name: 'last_outcomes',
    text: `select a.webhook, a.at, a.took_ms, a.status from unnest($1::bigint[]) w (number) cross join lateral (
             select * from delivery_attempts where webhook = w.number order by webhook desc, at desc, id desc limit $2) a
            where a.error is null or (a.error not like 'unreadable:%' and a.error not like '${FAILED_HERE}:%') order by a.webhook, a.at, a.id`,
    values: [webhooks, limit],
  });
  const all = rows.map(({ webhook, at, took_ms, status }) => ({ webhook, atMs: at.getTime(), tookMs: took_ms, status }));
  return Map.groupBy(all, ({ webhook }) => webhook);
}

/**
 * Makes an event due at once for every endpoint of its merchant that wants its type, with all its attempts; returns for how many. A row that is
 * made anew counts from anywhere: a result of the row before it may still be written, when its first commit was not answered or when a worker
 * that stood still goes on, and would end this one.
 */
export async function deliverAgain(sql: Sql, eventId: bigint): Promise<number> {
  const { rows } = await sql.query<{ count: number }>({
    name: 'deliver_again',
    text: `
      with again as (
        insert into deliveries (webhook, event_id, due_at, asked)
          select w.number, e.id, '-infinity', 1 + floor(random() * 1e9)::int from events e join webhooks w on w.merchant_id = e.merchant_id
           where e.id = $1 and w.enabled and (w.events is null or e.type = any (w.events)) order by w.number
          on conflict (webhook, event_id) do update set due_at = excluded.due_at, failures = 0, asked = deliveries.asked + 1
          returning 1),
      counted as (select count(*)::int as count from again)
      select count, case when count > 0 then pg_notify('hurry', '${DELIVERIES_JOB}') end from counted`,
    values: [eventId],
  });
  return rows[0]?.count ?? 0;
}

export type Recall = {
  readonly nowMs: number;
  /** After each failed attempt, the longest pause in milliseconds. */
  readonly longestMs: readonly number[];
  readonly limit: number;
};

/**
 * Gives some of what waits longer than it can after its last attempt another time within that pause, by chance: the clock was set back since,
 * nobody knows how much of the pause is over, and what has failed is not to come back all at once. Returns how many, at most the limit.
 */
export async function recallDeliveries(sql: Sql, { nowMs, longestMs, limit }: Recall): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'recall_deliveries',
    text: `
      with late as (
        select webhook, event_id, make_interval(secs => ($2::float8[])[failures] / 1000) as longest from deliveries
         where isfinite(due_at) and due_at > $1::timestamptz + make_interval(secs => ($2::float8[])[failures] / 1000) limit $3)
      update deliveries d set due_at = $1::timestamptz + random() * late.longest from late where d.webhook = late.webhook and d.event_id = late.event_id`,
    values: [new Date(nowMs), longestMs, limit],
  });
  return rowCount ?? 0;
}

/** Whether every delivery that was due at this time has been tried. */
export async function areTried(sql: Sql, atMs: number): Promise<boolean> {
  return (await waitingWebhooks(sql)).every(({ dueAtMs }) => dueAtMs > atMs);
}

/** Deletes some of what waits for an endpoint that is gone or disabled; returns how many. */
export async function forgetDeliveries(sql: Sql, webhook: bigint, limit: number): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'forget_deliveries',
    text: `delete from deliveries d where d.webhook = $1 and not exists (select 1 from webhooks w where w.number = $1 and w.enabled)
              and d.event_id = any (array(select event_id from deliveries where webhook = $1 limit $2))`,
    values: [webhook, limit],
  });
  return rowCount ?? 0;
}

/**
 * Deletes some of the attempts that are older than this; returns how many, as many as the limit where there may be more. It goes from one
 * endpoint to the next along the index: rows do not lie in the order of their time where the service's clock was set.
 */
export async function pruneAttempts(sql: Sql, beforeMs: number, limit: number): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'prune_attempts',
    text: `
      with recursive each as (
        (select webhook from delivery_attempts order by webhook limit 1)
        union all
        select n.webhook from each e cross join lateral (
          select webhook from delivery_attempts where webhook > e.webhook order by webhook limit 1) n)
      delete from delivery_attempts where id = any (array(
        select a.id from each cross join lateral (
          select id from delivery_attempts where webhook = each.webhook and at < $1 order by webhook, at, id limit $2) a limit $2))`,
    values: [new Date(beforeMs), limit],
  });
  return rowCount ?? 0;
}
