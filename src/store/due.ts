// What is due: transactions that the judge must look at, look-ups that rule 8 wants, and whether everything due has been done. Due times
// are compared with the own clock of each transaction's chain, so nothing of a chain that was not read to its end ever falls due.
import type { CurrencyCode } from '../core/currency.ts';
import type { Sql } from './connect.ts';

/** Ids of transactions that are due, the longest waiting first. */
export async function dueTransactions(
  sql: Sql,
  options: { readonly limit: number; readonly except: readonly string[] },
): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'due_transactions',
    text: `
      (select t.id from chain_cursors c cross join lateral (
         select id, due_at from transactions where currency = c.currency and due_at <= c.caught_up_at and id <> all ($2) order by due_at limit $1) t
        order by t.due_at limit $1)
      union
      (select p.transaction_id from chain_cursors c join payments p on p.currency = c.currency and p.due_height <= c.height
        where p.transaction_id <> all ($2) limit $1)
      union
      (select p.transaction_id from chain_cursors c join payments p on p.currency = c.currency and p.due_at <= c.caught_up_at
        where p.transaction_id <> all ($2) limit $1)`,
    values: [options.limit, options.except],
  });
  return rows.map((row) => row.id);
}

export type WantedLookup = {
  readonly ids: readonly string[];
  readonly scripts: readonly Uint8Array[];
  /** The height before the oldest of them. */
  readonly fromHeight: number;
  /** The judge has not come to all that is due on this chain: some of it may want to be looked up too. */
  readonly isJudging: boolean;
};

/** The transactions of a chain that rule 8 wants to have looked up once more; null when there are none. */
export async function wantedLookup(sql: Sql, currency: CurrencyCode): Promise<WantedLookup | null> {
  const { rows } = await sql.query<{ ids: string[]; scripts: Uint8Array[]; from_height: number; is_judging: boolean }>({
    name: 'wanted_lookup',
    text: `
      select w.ids, w.scripts,
             coalesce((select min(b.height) from blocks b where b.currency = c.currency and b.time >= w.oldest - interval '2 hours'), c.height) as from_height,
             exists (select 1 from transactions t where t.currency = c.currency and t.due_at <= c.caught_up_at) as is_judging
        from chain_cursors c cross join (
          select array_agg(id) as ids, array_agg(script) as scripts, min(window_ends_at) - interval '15 minutes' as oldest
            from transactions where currency = $1 and lookup_wanted and status = 'timedout' and script is not null) w
       where c.currency = $1 and w.ids is not null`,
    values: [currency],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return { ids: row.ids, scripts: row.scripts, fromHeight: row.from_height, isJudging: row.is_judging };
}

/** The chain was looked up for these transactions, begun at `atMs`; they are due again. */
export async function finishLookup(sql: Sql, ids: readonly string[], atMs: number): Promise<void> {
  await sql.query({
    name: 'finish_lookup',
    text: `update transactions set looked_up_at = $2, lookup_wanted = false, due_at = '-infinity'
            where id in (select id from transactions where id = any ($1) and lookup_wanted order by id for update)`,
    values: [ids, new Date(atMs)],
  });
}

/** Asks every worker to look now. */
export async function hurry(sql: Sql): Promise<void> {
  await sql.query({ name: 'hurry', text: `select pg_notify('hurry', '')`, values: [] });
}

const READ = `not exists (select 1 from node_conditions n left join chain_cursors c on c.currency = n.currency
                           where ($2::text[] is null or n.currency = any ($2))
                             and (n.checked_at < $1 or (n.state = 'ready' and (c.caught_up_at is null or c.caught_up_at < $1))))`;

/** Whether these chains were read to their end at or after this time; of one that cannot be read, whether that was tried. */
export async function isRead(sql: Sql, currencies: readonly CurrencyCode[], sinceMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ read: boolean }>({
    name: 'is_read',
    text: `select ${READ} as read`,
    values: [new Date(sinceMs), currencies],
  });
  return rows[0]?.read ?? false;
}

/** Whether nothing waits for the judge. */
export async function isJudged(sql: Sql): Promise<boolean> {
  return (await dueTransactions(sql, { limit: 1, except: [] })).length === 0;
}

/**
 * Whether all that was due at `sinceMs` has been done once: every chain that can be read was read since then, no scheduled reading of a chain
 * is due or running, and no transaction is due and no look-up wanted on a chain that can be read. Of a second reading, which only audits ask,
 * the first part will do. Audits change nothing that a caller sees: nobody waits for them.
 */
export async function isSettled(sql: Sql, sinceMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ settled: boolean }>({
    name: 'is_settled',
    // one statement: what the judge and a look-up hand to each other is seen with the one or with the other
    text: `
      select ${READ}
         and not exists (select 1 from schedules s
                          where (s.name like 'deep scan %' or s.name like 'reconcile %')
                            and (s.finished_at is null or s.taken_at <= $1::timestamptz - make_interval(secs => s.every_ms::float8 / 1000))
                            and not exists (select 1 from chain_reconciled r where s.name = 'reconcile ' || r.currency and r.updated_at >= $1))
         and not exists (select 1 from chain_cursors c where
               exists (select 1 from transactions t where t.currency = c.currency and t.due_at <= c.caught_up_at)
            or exists (select 1 from payments p where p.currency = c.currency and (p.due_height <= c.height or p.due_at <= c.caught_up_at))
            or exists (select 1 from transactions t join node_conditions n on n.currency = t.currency and n.state = 'ready'
                        where t.currency = c.currency and t.lookup_wanted)) as settled`,
    values: [new Date(sinceMs), null],
  });
  return rows[0]?.settled ?? false;
}
