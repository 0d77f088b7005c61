// What the watchers compare every output and input with: the scripts of payable transactions and the outpoints that payments spend. Rows
// are read in packs of bytes, and new ones by the id of the database transaction that wrote them, so that none is missed whatever the order
// of commits.

import { type CurrencyCode, EVM_CODES } from '../../core/currency.ts';
import { WINDOW_MS } from '../../core/judge/times.ts';
import type { Sql } from '../postgres/connect.ts';

/** Scripts, each after one byte of its length. */
export type Pack = Buffer;
export type SpentOutpoint = { readonly txid: string; readonly vout: number };

/** The oldest database transaction that is still open: everything written before it is visible to the next statement. */
export async function openHorizon(sql: Sql): Promise<string> {
  const { rows } = await sql.query<{ horizon: string }>({
    name: 'open_horizon',
    text: 'select pg_snapshot_xmin(pg_current_snapshot())::text as horizon',
    values: [],
  });
  return (rows[0] as { horizon: string }).horizon;
}

/** Rows whose transaction ids are in the future were restored from another cluster: they are not new. */
export async function forgetForeignHorizons(sql: Sql): Promise<void> {
  for (const table of ['transactions', 'payment_inputs', 'own_addresses', 'outgoing_inputs']) {
    await sql.query({
      name: `forget_foreign_horizons_${table}`,
      text: `update ${table} set made_in = '0' where made_in >= pg_snapshot_xmax(pg_current_snapshot())`,
      values: [],
    });
  }
}

const PACKED = `string_agg(set_byte('\\x00'::bytea, 0, length(script)) || script, ''::bytea)`;

/** One page of the scripts of transactions created since a time, in the order of their ids. */
export async function packScripts(
  sql: Sql,
  options: { readonly afterId: string; readonly sinceMs: number; readonly limit: number },
): Promise<{ readonly lastId: string | null; readonly pack: Pack | null }> {
  const { rows } = await sql.query<{ last_id: string | null; pack: Buffer | null }>({
    name: 'pack_scripts',
    text: `select max(id) as last_id, ${PACKED} as pack
             from (select id, script from transactions where id > $1 and created_at >= $2 and script is not null order by id limit $3) q`,
    values: [options.afterId, new Date(options.sinceMs), options.limit],
  });
  return { lastId: rows[0]?.last_id ?? null, pack: rows[0]?.pack ?? null };
}

const EVM = EVM_CODES.map((code) => `'${code}'`).join();

/** One page of the addresses on Ethereum's chain of all transactions, the newest first; `before`: the id after which it goes on. */
export async function evmScripts(
  sql: Sql,
  { before, limit }: { readonly before: string | null; readonly limit: number },
): Promise<{ readonly scripts: readonly Buffer[]; readonly before: string | null }> {
  const { rows } = await sql.query<{ id: string; script: Buffer }>({
    name: 'evm_scripts',
    text: `select id, script from transactions where ($1::text is null or id < $1) and currency in (${EVM}) and script is not null order by id desc limit $2`,
    values: [before, limit],
  });
  return { scripts: rows.map(({ script }) => script), before: rows.length < limit ? null : (rows.at(-1)?.id ?? null) };
}

/** The scripts of older transactions with payments that can still change, or whose chain is not read past their window yet. */
export async function packUnfinishedScripts(sql: Sql, sinceMs: number): Promise<Pack | null> {
  const { rows } = await sql.query<{ pack: Buffer | null }>({
    name: 'pack_unfinished_scripts',
    text: `select ${PACKED} as pack from transactions
             where created_at < $1 and script is not null
               and id in (select transaction_id from payments where state <> 'mined' or due_height is not null union all
                          select id from transactions where status = 'started' and due_at <= $2)`,
    values: [new Date(sinceMs), new Date(sinceMs + WINDOW_MS)],
  });
  return rows[0]?.pack ?? null;
}

/** The scripts of our own addresses (change and capital). */
export async function packOwnScripts(sql: Sql): Promise<Pack | null> {
  const { rows } = await sql.query<{ pack: Buffer | null }>({
    name: 'pack_own_scripts',
    text: `select ${PACKED} as pack from own_addresses`,
    values: [],
  });
  return rows[0]?.pack ?? null;
}

/**
 * The scripts that were written at or after a horizon, the next horizon, and the newest number of the database (early-payments.ts).
 * `relation`: the file of the table, another one once the table was made again from a dump.
 */
export async function packNewScripts(
  sql: Sql,
  horizon: string,
): Promise<{ readonly horizon: string; readonly pack: Pack | null; readonly order: number; readonly relation: string }> {
  const { rows } = await sql.query<{ horizon: string; pack: Buffer | null; order: number; relation: string }>({
    name: 'pack_new_scripts',
    text: `select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, (select last_value::float8 from fact_order) as order,
                  pg_relation_filenode('transactions')::text as relation,
                  (select ${PACKED} from (select script from transactions where made_in >= $1::xid8 and script is not null
                                           union all select script from own_addresses where made_in >= $1::xid8) q) as pack`,
    values: [horizon],
  });
  return rows[0] as (typeof rows)[number];
}

/** The scripts of a chain's payments that are not mined, or above a height, whatever their age: they may appear again. */
export async function packPaidScripts(sql: Sql, currency: CurrencyCode, aboveHeight: number): Promise<Pack | null> {
  const { rows } = await sql.query<{ pack: Buffer | null }>({
    name: 'pack_paid_scripts',
    text: `select ${PACKED} as pack from transactions
             where script is not null and id in (select transaction_id from payments where currency = $1 and (state <> 'mined' or height > $2))`,
    values: [currency, aboveHeight],
  });
  return rows[0]?.pack ?? null;
}

/** The outpoints that a chain's payments and our capital spend, of those that are not mined, or above a height, and those that batches spend. */
export async function spentOutpoints(sql: Sql, currency: CurrencyCode, aboveHeight: number): Promise<readonly SpentOutpoint[]> {
  const { rows } = await sql.query<SpentOutpoint>({
    name: 'spent_outpoints',
    text: `select i.prev_txid as txid, i.prev_vout as vout from payment_inputs i
             where i.currency = $1 and i.txid in (select txid from payments where currency = $1 and (state <> 'mined' or height > $2)
                                                  union all select txid from own_outputs where currency = $1 and coalesce(height, $2 + 1) > $2)
           union all
           select i.txid, i.vout from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
            where i.currency = $1 and (b.state in ('reserved', 'signed', 'mined') or coalesce(i.spent_height, $2 + 1) > $2)`,
    values: [currency, aboveHeight],
  });
  return rows;
}

/** The outpoints that were written at or after a horizon, the scripts of the payments that spend them, and the next horizon. */
export async function newSpentOutpoints(
  sql: Sql,
  currency: CurrencyCode,
  horizon: string,
): Promise<{ readonly horizon: string; readonly outpoints: readonly SpentOutpoint[]; readonly pack: Pack | null }> {
  const { rows } = await sql.query<{ horizon: string; txid: string | null; vout: number | null; pack: Buffer | null }>({
    name: 'new_spent_outpoints',
    // what is new is read by when it was made, and what it belongs to one by one: other plans read the chain's whole history at every look
    text: `with new as materialized (
             select prev_txid, prev_vout, txid from (select * from payment_inputs where made_in >= $2::xid8 offset 0) p where currency = $1
             union all
             select txid, vout, null from (select * from outgoing_inputs where made_in >= $2::xid8 offset 0) o where currency = $1)
           select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, i.prev_txid as txid, i.prev_vout as vout,
                  case when i.txid is not null and row_number() over () = 1 then (
                    select ${PACKED} from (
                      select distinct p.transaction_id as id from (select distinct txid from new where txid is not null) n
                       cross join lateral (select transaction_id from payments where currency = $1 and txid = n.txid offset 0) p) d
                     cross join lateral (select script from transactions where id = d.id and script is not null offset 0) t) end as pack
             from (values (1)) one left join new i on true`,
    values: [currency, horizon],
  });
  const outpoints = rows.flatMap((row) => (row.txid === null || row.vout === null ? [] : [{ txid: row.txid, vout: row.vout }]));
  const [first] = rows as [(typeof rows)[number]];
  return { horizon: first.horizon, outpoints, pack: first.pack };
}
