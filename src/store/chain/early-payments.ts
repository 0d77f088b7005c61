// Outputs at our addresses that are no payments (behaviour §3): they were in a block that was read, or in a mempool that was seen, before
// their transaction was made. Each is recorded once, kept out of the payments on every path, and named by the audit until an operator has
// looked at it. The order is decided by numbers that the database gives out, not by clocks.
import { type CurrencyCode, chainRow } from '../../core/currency.ts';
import type { MempoolEntry } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';

/** An output to the script of a transaction of ours. */
export type NewOutput = {
  readonly txid: string;
  readonly vout: number;
  readonly transactionId: string;
  readonly amount: bigint;
  /** The newest number when the mempool with this output was seen for the first time; null = no running process remembers seeing it there. */
  readonly seenOrder: number | null;
  /** What the node says of its entry into the mempool, where nothing else is known of that; null = it does not say, or it is in a block. */
  readonly entered: MempoolEntry | null;
};
export type NotedAt = {
  /** The block they are in; null = the mempool. */
  readonly height: number | null;
  /** The service's clock. */
  readonly atMs: number;
};

/**
 * What a node says of when a transaction entered its mempool counts against a payer only when two things agree: by the clocks it is at
 * least this much before the transaction was made, and by the chain the node has had as many blocks since as come in this time, the last of
 * which we had read before. Clocks alone can be wrong, and a node that was behind entered new transactions at an old height.
 */
const LONG_AGO_HOURS = 48;

/**
 * Records those of these outputs that are no payments because they were there before their transaction was made; returns those recorded now
 * or earlier (`txid:vout`). What counts for a block that is read again is its first reading, for a block that a reorganisation brought its
 * own reading, and for a block below our first one the reading of that first block. What is recorded is as its present block shows it.
 */
export async function noteEarly(
  sql: Sql,
  currency: CurrencyCode,
  at: NotedAt,
  outputs: readonly NewOutput[],
): Promise<ReadonlySet<string>> {
  const early = new Set<string>();
  await inParts(outputs, CHOSEN_AT_ONCE, async (part) => {
    for (const outpoint of await noteSome(sql, currency, at, part)) early.add(outpoint);
  });
  return early;
}

async function noteSome(
  sql: Sql,
  currency: CurrencyCode,
  at: NotedAt,
  outputs: readonly NewOutput[],
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ outpoint: string }>({
    name: 'note_early_payments',
    text: `
      with block as (
        select read_order from blocks where currency = $1 and height >= $2::int order by height limit 1),
      output as (
        select o.*, n.txid is not null as noted,
               n.accepted_at is not null as accepted,
               coalesce((select read_order from block) < t.made_order, false)
                 or coalesce(o.seen_order < t.made_order, false)
                 or coalesce(o.entered_at < t.created_at - make_interval(hours => ${LONG_AGO_HOURS}) and t.created_at <= $3
                             and (select b.read_order from blocks b where b.currency = $1 and b.height >= o.entered_height + $11
                                   order by b.height limit 1) < t.made_order, false) as early
          from unnest($4::text[], $5::int[], $6::text[], $7::numeric[], $8::bigint[], $9::timestamptz[], $10::int[])
                 as o(txid, vout, transaction_id, amount, seen_order, entered_at, entered_height)
          join transactions t on t.id = o.transaction_id
          -- each by itself: a plan made while the tables were small would join the currency's whole index
          left join lateral (select * from early_payments where currency = $1 and txid = o.txid and vout = o.vout offset 0) n on true
         where not exists (select 1 from payments p where p.currency = $1 and p.txid = o.txid and p.vout = o.vout offset 0)),
      added as (
        insert into early_payments (currency, txid, vout, transaction_id, amount, height, noted_at)
          select $1, txid, vout, transaction_id, amount, $2, $3 from output where early and not noted
          on conflict do nothing),
      -- on Ethereum's chain a transaction may pay something else in another block
      renewed as (
        update early_payments e set transaction_id = o.transaction_id, amount = o.amount, height = $2 from output o
         where o.noted and not o.accepted and $2::int is not null and e.currency = $1 and e.txid = o.txid and e.vout = o.vout
           and (e.transaction_id, e.amount, e.height) is distinct from (o.transaction_id, o.amount, $2::int))
      select txid || ':' || vout as outpoint from output where (early or noted) and not accepted`,
    values: [
      currency,
      at.height,
      new Date(at.atMs),
      outputs.map((one) => one.txid),
      outputs.map((one) => one.vout),
      outputs.map((one) => one.transactionId),
      outputs.map((one) => one.amount),
      outputs.map((one) => one.seenOrder),
      outputs.map(({ entered }) => (entered === null ? null : new Date(entered.atMs).toISOString())),
      outputs.map(({ entered }) => entered?.height ?? null),
      Math.ceil((LONG_AGO_HOURS * 3_600) / chainRow(currency).blockSeconds),
    ],
  });
  return rows.map((row) => row.outpoint);
}

/** Which of these outputs are recorded as early and are no payments (`txid:vout`). */
export async function earlyAmong(
  sql: Sql,
  currency: CurrencyCode,
  outputs: readonly { readonly txid: string; readonly vout: number }[],
): Promise<ReadonlySet<string>> {
  const early = new Set<string>();
  await inParts(outputs, CHOSEN_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ outpoint: string }>({
      text: `select o.txid || ':' || o.vout as outpoint from unnest($2::text[], $3::int[]) as o(txid, vout)
              cross join lateral (select 1 from early_payments
                                   where currency = $1 and txid = o.txid and vout = o.vout and accepted_at is null limit 1) e`,
      values: [currency, part.map((one) => one.txid), part.map((one) => one.vout)],
    });
    for (const { outpoint } of rows) early.add(outpoint);
  });
  return early;
}

/** An operator has looked at the output at an outpoint (`txid:vout`): the audit no longer names it. False when nothing is recorded there. */
export async function acknowledgeEarly(sql: Sql, outpoint: string, by: string, at: Date): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'acknowledge_early',
    text: `update early_payments set acknowledged_at = coalesce(acknowledged_at, $3), acknowledged_by = coalesce(acknowledged_by, $2)
             where txid || ':' || vout = $1`,
    values: [outpoint, by, at],
  });
  return (rowCount ?? 0) > 0;
}

export type AcceptedEarly = { readonly currency: CurrencyCode; readonly transactionId: string; readonly height: number | null };

/**
 * An operator has decided that the output at an outpoint (`txid:vout`) is a payment all the same: from now on it is recorded like any other
 * where it is read. Null when nothing is recorded there.
 */
export async function acceptEarly(sql: Sql, outpoint: string, by: string, at: Date): Promise<AcceptedEarly | null> {
  const { rows } = await sql.query<AcceptedEarly>({
    name: 'accept_early',
    text: `update early_payments set acknowledged_at = coalesce(acknowledged_at, $3), acknowledged_by = coalesce(acknowledged_by, $2),
                                  accepted_at = coalesce(accepted_at, $3), accepted_by = coalesce(accepted_by, $2)
             where txid || ':' || vout = $1 returning currency, transaction_id as "transactionId", height`,
    values: [outpoint, by, at],
  });
  return rows[0] ?? null;
}
