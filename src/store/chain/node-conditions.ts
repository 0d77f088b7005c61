// The last known condition of each chain's nodes, and whether they agree. The chain watchers write it with every pass; above a
// limit the judge books only what two nodes hold.
import { finalDepth } from '../../core/confirmations.ts';
import { type CurrencyCode, chainRow, type PaymentMethod } from '../../core/currency.ts';
import type { NodeAgreement, NodeCondition } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';

/**
 * A worker looks at its nodes every few seconds and says so at least every twenty-five: a record older than this means that no worker does.
 * Measured on the database's own clock, since the service's may be set; a record dated in the future is recent.
 */
export const LOOKED_RECENTLY_MS = 60_000;
/** SQL: whether a worker has looked at this node (a row of node_conditions) recently. */
export const IS_LOOKED_AT = (row: string): string =>
  `${row}.looked_at >= clock_timestamp() - interval '${LOOKED_RECENTLY_MS} milliseconds'`;

/**
 * SQL: the height up to which two nodes hold what we read; −1 while they contradict each other, or when another branch was read since; null
 * where only one is configured.
 * @param row a row of node_conditions
 */
export function agreedHeight(row: string): string {
  return `case when ${row}.contested is not null then -1 when ${IS_READ(row)} then ${row}.agreed_height when ${row}.agreed_height is not null then -1 end`;
}
/** SQL: the highest agreed block is the one that we read at its height. */
const IS_READ = (row: string): string =>
  `exists (select 1 from blocks b where b.currency = ${row}.currency and b.height = ${row}.agreed_height and b.hash = ${row}.agreed_hash)`;

/** {@link agreedHeight} of a chain, null too where no node was looked at. */
export async function readAgreedHeight(sql: Sql, currency: CurrencyCode): Promise<number | null> {
  const { rows } = await sql.query<{ height: number | null }>({
    name: 'read_agreed_height',
    text: `select ${agreedHeight('n')} as height from node_conditions n where currency = $1`,
    values: [currency],
  });
  return rows[0]?.height ?? null;
}

/** A chain with more unread blocks than this is reported as behind. */
export const FAR_BEHIND = 6;

/**
 * SQL with `was` and `now`, the rows before and after: `waiting`, the transactions that a contradiction which is over, or a lower block of two
 * nodes, may have kept waiting. $15: the final depth, $16: the blocks until a coinbase is mature.
 */
const WAITED_FOR_AGREEMENT = `
      -- between these heights a payment may have reached a depth that two nodes hold; on another branch, or at no block (0), any payment
      risen as materialized (
        select case when was.is_read then least(was.agreed_height, now.agreed_height) else -1 end as low,
               coalesce(now.agreed_height, 2147483647) as high from now cross join was
          where (now.agreed_height, now.agreed_hash) is distinct from (was.agreed_height, was.agreed_hash) and was.agreed_height is not null),
      waiting as (
        select transaction_id from payments
          where (select contested from was) is not null and (select contested from now) is null
            and currency = $1 and ((part_key is null and state in ('mempool', 'mined')) or in_suspense > 0)
        union all
        select transaction_id from payments
          where currency = $1 and height > (select low - $15::bigint from risen) and height <= (select high from risen)
            and ((part_key is null and state = 'mined') or in_suspense > 0)
        union all
        select transaction_id from payments
          where currency = $1 and height > (select low - $16::bigint from risen) and height <= (select high - $16::bigint + 1 from risen)
            and coinbase and part_key is null and state = 'mined'
        union all
        select reimburses from payouts
          where ((select contested from was) is not null and (select contested from now) is null or exists (select 1 from risen))
            and currency = $1 and reimburses is not null and step = 'held')`;

/**
 * Records what the node says of itself now. A contradiction among several nodes stands until two of them agree on the very block that we
 * have read up to (or only one is configured, and that block is its tip): the branch that we are on may be the one that lost. Then every
 * transaction that may have waited for that is due again. A look that is older than the recorded one ends no contradiction. Where several
 * are configured, the highest block that two of them hold is recorded once it was read, and stays while only one can be asked; what may
 * have waited for it is due again.
 * @param options.pushes its announcements (ZMQ) arrive
 * @param options.behind it is ready, but has fewer blocks than were read from it: the reason to record; the time does not count as one in
 * which it was read
 */
export async function recordCondition(
  sql: Sql,
  currency: CurrencyCode,
  condition: NodeCondition,
  atMs: number,
  options: { readonly behind?: string | null; readonly pushes?: boolean } = {},
): Promise<void> {
  const ready = condition.state === 'ready' ? condition : null;
  const behind = options.behind ?? null;
  const agreement = agreementOf(condition);
  const agreed = agreement.state === 'agreed' ? agreement : null;
  const { final, coinbaseMaturity } = waitedDepths(currency);
  await sql.query({
    name: 'record_condition',
    text: `
      with was as (
        select contested, agreed_height, agreed_hash, ${IS_READ('node_conditions')} as is_read from node_conditions where currency = $1),
      agreed as materialized (
        select coalesce(b.height, -1) as height, b.hash
          from (values (1)) one left join blocks b on b.currency = $1 and b.height = $10 and b.hash = $12),
      now as (
        insert into node_conditions (currency, state, reason, height, hash, checked_at, looked_at, node, others, contested, outage, pushes, agreed_height, agreed_hash)
          select $1, $2, $3, $4, $5, $6, clock_timestamp(), $7, $8, $9, $2 <> 'ready' or $11::boolean, $13,
                 case when $14 then a.height end, case when $14 then a.hash end from agreed a
          on conflict (currency) do update set state = excluded.state, reason = excluded.reason, height = coalesce(excluded.height, node_conditions.height),
            hash = excluded.hash, checked_at = excluded.checked_at, looked_at = excluded.looked_at,
            pushes = excluded.pushes,
            node = case when $2 = 'ready' then excluded.node else node_conditions.node end, others = excluded.others,
            contested = case when excluded.contested is not null then excluded.contested
                             when node_conditions.contested is not null and node_conditions.checked_at <= excluded.checked_at
                                  and exists (select 1 from chain_cursors c where c.currency = $1 and c.height = $10 and c.hash = $12)
                             then null else node_conditions.contested end,
            outage = node_conditions.outage or excluded.outage,
            (agreed_height, agreed_hash) = (
              select case when h.kept then node_conditions.agreed_height else excluded.agreed_height end,
                     case when h.kept then node_conditions.agreed_hash else excluded.agreed_hash end
                from (select $2 <> 'ready' or (node_conditions.agreed_height >= excluded.agreed_height and ${IS_READ('node_conditions')}) as kept) h)
        returning contested, agreed_height, agreed_hash),
      ${WAITED_FOR_AGREEMENT},
      woken as (insert into due_marks (transaction_id) select distinct transaction_id from waiting returning 1)
      select pg_notify('judge', $1) from (select count(*) as n from woken) w where w.n > 0`,
    values: [
      currency,
      condition.state,
      condition.state === 'ready' ? behind : condition.reason,
      condition.height,
      ready?.hash ?? null,
      new Date(atMs),
      ready?.node ?? null,
      ready?.others ?? [],
      agreement.state === 'contested' ? agreement.reason : null,
      agreed?.height ?? null,
      behind !== null,
      agreed?.hash ?? null,
      ready !== null && options.pushes === true,
      ready?.agreement !== undefined,
      final,
      coinbaseMaturity,
    ],
  });
}

/** How far below the highest agreed block a payment may wait for it. */
function waitedDepths(currency: CurrencyCode): { readonly final: number; readonly coinbaseMaturity: number } {
  return { final: finalDepth(currency).depth, coinbaseMaturity: chainRow(currency).coinbaseMaturity };
}

/** A single node agrees with itself. */
function agreementOf(condition: NodeCondition): NodeAgreement {
  if (condition.state !== 'ready') return { state: 'unknown' };
  return condition.agreement ?? { state: 'agreed', height: condition.height, hash: condition.hash };
}

export type ChainStatus = {
  readonly currency: PaymentMethod;
  readonly state: string;
  /** Why it is not ready; for a ready node, that it has fewer blocks than were read from it, or that many of its blocks are not read yet. */
  readonly reason: string | null;
  /** The node's height, and how far we have read. */
  readonly nodeHeight: number | null;
  readonly height: number | null;
  readonly hash: string | null;
  readonly caughtUpAtMs: number | null;
  readonly deepHeight: number | null;
  readonly checkedAtMs: number;
  /** How long ago that was, whatever was done to the service's clock since; negative when the database's clock was set back. */
  readonly lookedAgoMs: number;
  /** Whether its node announces news and the announcements arrive; without them it is asked twice a second while somebody may pay. */
  readonly pushes: boolean;
  /** Which of several nodes is read. */
  readonly node: string | null;
  /** Why our nodes do not agree about the chain; null while they do. */
  readonly contested: string | null;
  /** What is wrong with the other nodes. */
  readonly others: readonly string[];
};

/** One row per chain that a watcher has looked at. */
export async function readChainStatus(sql: Sql): Promise<readonly ChainStatus[]> {
  const { rows } = await sql.query<{
    currency: PaymentMethod;
    state: string;
    reason: string | null;
    node_height: number | null;
    height: number | null;
    hash: string | null;
    caught_up_at: Date | null;
    deep_height: number | null;
    checked_at: Date;
    looked_ago_ms: number;
    pushes: boolean;
    node: string | null;
    contested: string | null;
    others: string[];
  }>({
    name: 'read_chain_status',
    text: `select n.currency, n.state, n.height as node_height,
                  coalesce(n.reason, case when n.state = 'ready' and n.height - c.height > $1 then n.height - c.height || ' blocks are not read yet' end) as reason,
                  c.height, c.hash, c.caught_up_at, c.deep_height, n.checked_at,
                  (extract(epoch from clock_timestamp() - n.looked_at) * 1000)::float8 as looked_ago_ms,
                  n.node, n.contested, n.others, n.pushes
             from node_conditions n left join chain_cursors c using (currency) order by n.currency`,
    values: [FAR_BEHIND],
  });
  return rows.map((row) => ({
    currency: row.currency,
    state: row.state,
    reason: row.reason,
    nodeHeight: row.node_height,
    height: row.height,
    hash: row.hash,
    caughtUpAtMs: row.caught_up_at?.getTime() ?? null,
    deepHeight: row.deep_height,
    checkedAtMs: row.checked_at.getTime(),
    lookedAgoMs: row.looked_ago_ms,
    pushes: row.pushes,
    node: row.node,
    contested: row.contested,
    others: row.others,
  }));
}

/**
 * The currencies without a node in this configuration whose chain something still waits for: a window, a confirmation, settlement.
 * @param configured the currencies that have a node
 */
export async function readAbandoned(sql: Sql, configured: readonly PaymentMethod[]): Promise<readonly PaymentMethod[]> {
  const { rows } = await sql.query<{ currency: PaymentMethod }>({
    name: 'read_abandoned',
    text: `select c.currency from chain_cursors c
            where c.currency <> all ($1::text[])
              and (exists (select 1 from transactions t where t.currency = c.currency and t.due_at is not null)
                or exists (select 1 from payments p where p.currency = c.currency and p.due_height is not null)
                or exists (select 1 from payments p where p.currency = c.currency and p.state in ('mempool', 'gone')))
            order by c.currency`,
    values: [configured],
  });
  return rows.map(({ currency }) => currency);
}
