// Endpoints as the operator sees them: what waits, what their last attempt was, which of them fail; and what failed made due again.
import type { Sql } from '../postgres/connect.ts';
import { DELIVERIES_JOB } from './deliveries.ts';
import { TOLD_SEQUENCE } from './events.ts';
import { ENDPOINT_COLUMNS, type Endpoint, endpointOf, type RawEndpoint } from './webhooks.ts';

/** What waits for an endpoint is counted up to this. */
export const MOST_COUNTED = 10_000;
/** How many endpoints with something waiting are looked at. */
const LOOKED_AT = 1_000;

/** An attempt that was made. */
export type MadeAttempt = { readonly atMs: number; readonly status: number | null; readonly error: string | null };
export type EndpointState = Endpoint & {
  readonly affiliateId: string;
  /** At most {@link MOST_COUNTED}. */
  readonly waiting: number;
  /** When the oldest event that waits was written; null: nothing waits. */
  readonly oldestAtMs: number | null;
  /** When the next attempt is due, −∞ = at once; null: nothing waits. */
  readonly dueAtMs: number | null;
  readonly last: MadeAttempt | null;
};

type Raw = RawEndpoint & {
  affiliate_id: string;
  waiting: number;
  oldest: Date | null;
  due_ms: number | null;
  attempted: Date | null;
  status: number | null;
  error: string | null;
};

const COLUMNS = `${ENDPOINT_COLUMNS}, m.affiliate_id, c.waiting, o.oldest, d.due_ms, a.at as attempted, a.status, a.error`;
/** SQL of what an endpoint `w` is joined with; each part is a walk along an index. */
const JOINED = `join merchants m on m.id = w.merchant_id
  cross join lateral (select count(*)::int as waiting from (select from deliveries where webhook = w.number limit ${MOST_COUNTED}) x) c
  left join lateral (select case when isfinite(due_at) then (extract(epoch from due_at) * 1000)::float8 else '-infinity' end as due_ms
                       from deliveries where webhook = w.number order by webhook, due_at limit 1) d on true
  left join lateral (select e.at as oldest from (select event_id from deliveries where webhook = w.number order by webhook, event_id limit 1) x
                       join events e on e.id = x.event_id) o on true
  left join lateral (select at, status, error from delivery_attempts where webhook = w.number order by webhook desc, at desc, id desc limit 1) a on true`;
const HAS_FAILED = 'a.at is not null and (a.status is null or a.status not between 200 and 299)';

function stateOf(raw: Raw): EndpointState {
  return {
    ...endpointOf(raw),
    affiliateId: raw.affiliate_id,
    waiting: raw.waiting,
    oldestAtMs: raw.oldest?.getTime() ?? null,
    dueAtMs: raw.due_ms,
    last: raw.attempted === null ? null : { atMs: raw.attempted.getTime(), status: raw.status, error: raw.error },
  };
}

/**
 * Endpoints of all merchants, the newest first.
 * @param wanted.failing only those whose last attempt failed, and what was disabled
 * @param wanted.affiliateId null = of every merchant
 */
export async function listEndpoints(
  sql: Sql,
  { failing, affiliateId, limit }: { readonly failing: boolean; readonly affiliateId: string | null; readonly limit: number },
): Promise<readonly EndpointState[]> {
  const { rows } = await sql.query<Raw>({
    name: failing ? 'list_failing_endpoints' : 'list_endpoints',
    text: `select ${COLUMNS} from webhooks w ${JOINED}
            where ($1::text is null or m.affiliate_id = $1) ${failing ? `and (not w.enabled or (${HAS_FAILED}))` : ''}
            order by w.number desc limit $2`,
    values: [affiliateId, limit],
  });
  return rows.map(stateOf);
}

/** One endpoint; null when there is none with this id. */
export async function readEndpoint(sql: Sql, id: string): Promise<EndpointState | null> {
  const { rows } = await sql.query<Raw>({
    name: 'read_endpoint',
    text: `select ${COLUMNS} from webhooks w ${JOINED} where w.id = $1`,
    values: [id],
  });
  return rows[0] === undefined ? null : stateOf(rows[0]);
}

/** Its last attempt failed, and something waits. */
export type FailingEndpoint = EndpointState & { readonly oldestAtMs: number; readonly last: MadeAttempt };

/**
 * Some endpoints that have taken nothing since before this time, though something older waits for them. What was delivered long ago and is
 * asked for again is old as well, so the endpoint's attempts say since when it takes nothing.
 */
export async function failingEndpoints(
  sql: Sql,
  { beforeMs, limit }: { readonly beforeMs: number; readonly limit: number },
): Promise<readonly FailingEndpoint[]> {
  const { rows } = await sql.query<Raw>({
    name: 'failing_endpoints',
    text: `
      with recursive each as (
        (select webhook from deliveries order by webhook limit 1)
        union all
        select n.webhook from each e cross join lateral (select webhook from deliveries where webhook > e.webhook order by webhook limit 1) n)
      select ${COLUMNS} from (select webhook from each limit ${LOOKED_AT}) x join webhooks w on w.number = x.webhook ${JOINED}
       where w.enabled and ${HAS_FAILED} and o.oldest < $1
         and not exists (select from delivery_attempts t where t.webhook = w.number and t.at >= $1 and t.status between 200 and 299)
         and (select coalesce(b.status not between 200 and 299, true)
                from delivery_attempts b where b.webhook = w.number and b.at < $1 order by b.webhook desc, b.at desc, b.id desc limit 1)
       limit $2`,
    values: [new Date(beforeMs), limit],
  });
  return rows.map((raw) => stateOf(raw) as FailingEndpoint);
}

export type EndpointAttempt = MadeAttempt & {
  readonly objectId: string;
  readonly sequence: number;
  readonly type: string;
  readonly tookMs: number;
  /** How its answer begins. */
  readonly answer: Uint8Array;
};

/** The last attempts at an endpoint since this time, the newest first. */
export async function lastAttempts(
  sql: Sql,
  { webhook, sinceMs, limit }: { readonly webhook: bigint; readonly sinceMs: number; readonly limit: number },
): Promise<readonly EndpointAttempt[]> {
  const { rows } = await sql.query<{
    at: Date;
    status: number | null;
    error: string | null;
    took_ms: number;
    answer: Uint8Array;
    object_id: string;
    sequence: number;
    type: string;
  }>({
    name: 'last_attempts',
    text: `select a.at, a.status, a.error, a.took_ms, a.answer, e.object_id, ${TOLD_SEQUENCE} as sequence, e.type
             from (select * from delivery_attempts where webhook = $1 and at >= $2 order by webhook desc, at desc, id desc limit $3) a
             join events e on e.id = a.event_id order by a.at desc, a.id desc`,
    values: [webhook, new Date(sinceMs), limit],
  });
  return rows.map((row) => ({
    atMs: row.at.getTime(),
    status: row.status,
    error: row.error,
    tookMs: row.took_ms,
    answer: row.answer,
    objectId: row.object_id,
    sequence: row.sequence,
    type: row.type,
  }));
}

type Part = { readonly webhook: bigint; readonly after: bigint; readonly limit: number };
/** How many were made due, and up to which event; null: there are no more. */
export type MadeDue = { readonly count: number; readonly last: bigint | null };

/** Makes some of what waits for an endpoint due at once, with all its attempts. */
export async function hurryWaiting(sql: Sql, { webhook, after, limit }: Part): Promise<MadeDue> {
  const { rows } = await sql.query<{ count: number; last: bigint | null }>({
    name: 'hurry_waiting',
    text: `
      with part as (
        select event_id from deliveries where webhook = $1 and event_id > $2 order by event_id limit $3 for update),
      due as (
        update deliveries d set due_at = '-infinity', failures = 0, asked = asked + 1 from part
         where d.webhook = $1 and d.event_id = part.event_id returning d.event_id),
      counted as (select count(*)::int as count, max(event_id) as last from due)
      select count, last, case when count > 0 then pg_notify('hurry', '${DELIVERIES_JOB}') end from counted`,
    values: [webhook, after, limit],
  });
  return { count: rows[0]?.count ?? 0, last: rows[0]?.last ?? null };
}

/** Makes some of the events due again that an endpoint was tried with since this time, did not take, and that were given up. */
export async function deliverGivenUp(
  sql: Sql,
  { webhook, after, limit, sinceMs }: Part & { readonly sinceMs: number },
): Promise<MadeDue> {
  const { rows } = await sql.query<{ count: number; last: bigint | null }>({
    name: 'deliver_given_up',
    text: `
      with failed as (
        select event_id from delivery_attempts where webhook = $1 and at >= $4 and event_id > $2
         group by event_id having not bool_or(coalesce(status between 200 and 299, false)) order by event_id limit $3),
      made as (
        insert into deliveries (webhook, event_id, due_at) select $1, event_id, '-infinity' from failed
          on conflict (webhook, event_id) do nothing returning 1)
      select (select count(*) from made)::int as count, (select max(event_id) from failed) as last,
             case when exists (select from made) then pg_notify('hurry', '${DELIVERIES_JOB}') end`,
    values: [webhook, after, limit, new Date(sinceMs)],
  });
  return { count: rows[0]?.count ?? 0, last: rows[0]?.last ?? null };
}
