// What is due: transactions for the judge, look-ups that rule 8 wants, and whether everything due has been done. Due times are compared
// with the own clock of each transaction's chain, so nothing falls due on a chain that was not read to its end.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type DueTransaction = {
  readonly id: string;
  /** How many payments it has; for a large one, some number above {@link LARGE}. */
  readonly payments: number;
  readonly isLarge: boolean;
};
/** A transaction with more payments is decided by itself. */
const LARGE = 200;

/** SQL: whether a transaction rests after a failure (undecided-transactions.ts). */
const RESTS = (id: string): string =>
  `exists (select 1 from set_aside a where a.transaction_id = ${id} and a.rests_until > clock_timestamp())`;

/**
 * SQL for the transactions whose payments have reached what they wait for, in the order in which they did: it goes from one transaction to
 * the next along the index, so that one with thousands of payments costs the same as any other. Part of a `with recursive`.
 */
function reached(name: string, column: 'due_height' | 'due_at', reach: 'height' | 'caught_up_at'): string {
  const next = (after: string) =>
    `select p.${column} as at, p.transaction_id as id from payments p where p.currency = c.currency and p.${column} <= c.reach ${after}
       order by p.${column}, p.transaction_id limit 1`;
  return `${name} as (
    select c.currency, c.reach, q.* from (select currency, ${reach} as reach from chain_cursors) c cross join lateral (${next('')}) q
    union all
    select c.currency, c.reach, q.* from ${name} c cross join lateral (${next(`and (p.${column}, p.transaction_id) > (c.at, c.id)`)}) q)`;
}

/** How many of each kind of due transaction are returned at once. */
export const MOST_DUE = 400;
const FREE = (id: string): string => `${id} <> all ((select ids from resting)::text[])`;

/**
 * Transactions that are due, at most some hundreds: first those whose facts have changed, then those whose time has come, then those whose
 * payments have reached what they wait for; each the longest waiting first. Those that rest after a failure are left out.
 */
export async function dueTransactions(sql: Sql): Promise<readonly DueTransaction[]> {
  const { rows } = await sql.query<{ id: string; payments: number }>({
    name: 'due_transactions',
    // it has no parameters, so that a session plans it only once
    text: `
      with recursive resting as materialized (
        select coalesce(array_agg(transaction_id), '{}') as ids from set_aside where rests_until > clock_timestamp()),
      ${reached('deep', 'due_height', 'height')}, ${reached('gone', 'due_at', 'caught_up_at')},
      marked as (select m.id as n, m.transaction_id as id from due_marks m where ${FREE('m.transaction_id')} order by m.id limit ${MOST_DUE}),
      timed as (
        select t.due_at, t.id from chain_cursors c cross join lateral (
          select t.id, t.due_at from transactions t where t.currency = c.currency and t.due_at <= c.caught_up_at and ${FREE('t.id')}
           order by t.due_at limit ${MOST_DUE}) t
         order by t.due_at limit ${MOST_DUE}),
      due as (
        select 1 as kind, n, id from marked union all
        select 2, row_number() over (order by due_at), id from timed union all
        select 3, row_number() over (), id from (select id from deep where ${FREE('deep.id')} limit ${MOST_DUE}) d union all
        select 3, row_number() over (), id from (select id from gone where ${FREE('gone.id')} limit ${MOST_DUE}) g)
      select d.id, (select count(*)::int from (select 1 from payments p where p.transaction_id = d.id limit ${LARGE + 1}) q) as payments
        from (select distinct on (id) id, kind, n from due order by id, kind, n) d order by d.kind, d.n`,
    values: [],
  });
  return rows.map(({ id, payments }) => ({ id, payments, isLarge: payments > LARGE }));
}

export type WantedLookup = {
  readonly ids: readonly string[];
  readonly scripts: readonly Uint8Array[];
  /** The height before the oldest of them. */
  readonly fromHeight: number;
  /** The judge has not decided everything that is due on this chain: some of it may need a look-up too. */
  readonly isJudging: boolean;
};

/** The transactions of a chain that rule 8 wants to look up once more; null when there are none. */
export async function wantedLookup(sql: Sql, currency: PaymentMethod): Promise<WantedLookup | null> {
  const { rows } = await sql.query<{ ids: string[]; scripts: Uint8Array[]; from_height: number; is_judging: boolean }>({
    name: 'wanted_lookup',
    text: `
      select w.ids, w.scripts,
             coalesce((select min(b.height) from blocks b where b.currency = c.currency and b.time >= w.oldest - interval '2 hours'), c.height) as from_height,
             exists (select 1 from transactions t where t.currency = c.currency and t.due_at <= c.caught_up_at and not ${RESTS('t.id')}) as is_judging
        from chain_cursors c cross join (
          select array_agg(id) as ids, array_agg(script) as scripts, min(created_at) as oldest
            from transactions where currency = $1 and lookup_wanted and status = 'timedout' and script is not null) w
       where c.currency = $1 and w.ids is not null`,
    values: [currency],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return { ids: row.ids, scripts: row.scripts, fromHeight: row.from_height, isJudging: row.is_judging };
}

/**
 * The chain was searched for these transactions, beginning at `atMs`; they are due again. One whose row another session holds is left out:
 * it remains wanted, and does not hold up the others.
 */
export async function finishLookup(sql: Sql, ids: readonly string[], atMs: number): Promise<void> {
  await sql.query({
    name: 'finish_lookup',
    text: `update transactions set looked_up_at = $2, lookup_wanted = false, due_at = '-infinity'
            where id in (select id from transactions where id = any ($1) and lookup_wanted order by id for no key update skip locked)`,
    values: [ids, new Date(atMs)],
  });
}

/** Makes every worker run now the jobs of these names, or every urgent job when none is named. */
export async function wakeJobs(sql: Sql, jobs: readonly string[] = []): Promise<void> {
  await sql.query({ name: 'wake_jobs', text: `select pg_notify('hurry', $1)`, values: [jobs.join(',')] });
}

/** SQL: whether these chains (null = all) were read to their end at or after a time; for a chain that cannot be read, whether that was tried. */
const READ = (codes: string, since: string): string =>
  `not exists (select 1 from node_conditions n left join chain_cursors c on c.currency = n.currency
                where (${codes} is null or n.currency = any (string_to_array(${codes}, ',')))
                  and (n.checked_at < ${since} or (n.state = 'ready' and (c.caught_up_at is null or c.caught_up_at < ${since}))))`;

export type AskedReading = { readonly currencies: readonly PaymentMethod[]; readonly sinceMs: number };

/** For each item: whether its chains were read to their end at or after its time; for a chain that cannot be read, whether that was tried. */
export async function areRead(sql: Sql, asked: readonly AskedReading[]): Promise<readonly boolean[]> {
  const { rows } = await sql.query<{ read: boolean }>({
    name: 'are_read',
    text: `select ${READ('a.codes', 'a.since')} as read from unnest((select $1::text[]), (select $2::timestamptz[])) with ordinality as a(codes, since, n) order by a.n`,
    values: [asked.map((one) => one.currencies.join(',')), asked.map((one) => new Date(one.sinceMs).toISOString())],
  });
  return rows.map((row) => row.read);
}

/** SQL: nothing is due for the judge, except what rests after a failure. */
export const JUDGED = `not exists (select 1 from due_marks m where not ${RESTS('m.transaction_id')})
         and not exists (select 1 from chain_cursors c where
               exists (select 1 from transactions t where t.currency = c.currency and t.due_at <= c.caught_up_at and not ${RESTS('t.id')})
            or exists (select 1 from payments p where p.currency = c.currency and p.due_height <= c.height and not ${RESTS('p.transaction_id')})
            or exists (select 1 from payments p where p.currency = c.currency and p.due_at <= c.caught_up_at and not ${RESTS('p.transaction_id')}))`;

/** Whether nothing is due for the judge, except what rests after a failure. */
export async function isJudged(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ judged: boolean }>({ name: 'is_judged', text: `select ${JUDGED} as judged`, values: [] });
  return rows[0]?.judged ?? false;
}

/**
 * Whether everything that was due at `sinceMs` has been done once: every chain that can be read was read since then, no scheduled reading
 * of a chain is due or running, and no transaction is due and no look-up wanted on a chain that can be read. Of a second reading, which
 * only audits need, the first part suffices. Where a worker drives bank files, it has looked at them. Audits change nothing that a caller sees, so nobody waits for them.
 */
export async function isSettled(sql: Sql, sinceMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ settled: boolean }>({
    name: 'is_settled',
    // one statement, so that work which the judge and a look-up pass to each other is seen with one of the two
    text: `
      select ${READ('null::text', '$1')}
         and not exists (select 1 from schedules s
                          where (s.name like 'deep scan %' or s.name like 'reconcile %')
                            and (s.finished_at is null or s.taken_at <= $1::timestamptz - make_interval(secs => s.every_ms::float8 / 1000))
                            and not exists (select 1 from chain_reconciled r where s.name = 'reconcile ' || r.currency and r.updated_at >= $1))
         and ${JUDGED}
         and not exists (select 1 from bank_reads where begun_at < $1)
         and not exists (select 1 from transactions t join node_conditions n on n.currency = t.currency and n.state = 'ready'
                          join chain_cursors c on c.currency = t.currency where t.lookup_wanted and not ${RESTS('t.id')}) as settled`,
    values: [new Date(sinceMs)],
  });
  return rows[0]?.settled ?? false;
}
