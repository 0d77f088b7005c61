// What our Lightning node says of paid invoices: each becomes a payment of its transaction, once, and its transaction is due for the judge. How
// far the node's settlements were read is written with them.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { InvoiceFacts } from '../../core/lightning/port.ts';
import type { Sql } from '../postgres/connect.ts';
import { SETTLED_HASH, SETTLED_HEIGHT } from './invoices.ts';

/**
 * Records settled invoices. Those that are not ours (the node may serve others too), and those recorded before, change nothing.
 * @param node the public key of the node that says so; null = how far it was read stays as it is
 * @returns how many were new
 */
export async function recordSettled(
  sql: Sql,
  node: string | null,
  settled: readonly InvoiceFacts[],
  atMs: number,
): Promise<number> {
  if (settled.length === 0) return 0;
  const { rows } = await sql.query<{ n: number }>({
    name: 'record_settled',
    text: `
      with said as materialized (
        select * from unnest($1::text[], $2::numeric[], $3::timestamptz[], $4::bigint[], $7::timestamptz[]) as t(payment_hash, paid_msat, settled_at, settle_index, added_at)),
      paid as (
        update lightning_invoices i set state = 'settled', paid_msat = s.paid_msat, settled_at = s.settled_at, settle_index = s.settle_index
          from said s where i.payment_hash = s.payment_hash and i.state <> 'settled'
        returning i.payment_hash, i.transaction_id, i.paid_msat, i.created_at, i.settled_at, s.added_at),
      made as (
        insert into payments (currency, transaction_id, txid, vout, amount, coinbase, twin_key, state, height, block_hash, block_time, last_height,
                              seen_at, caught_up_at, found_mined)
        select '${LIGHTNING.code}', t.id, p.payment_hash, 0, div(p.paid_msat, 1000), false, decode(p.payment_hash, 'hex'), 'mined',
               ${SETTLED_HEIGHT}, '${SETTLED_HASH}', p.settled_at, ${SETTLED_HEIGHT},
               -- the node's clock is its own, and gives whole seconds: what counts is how long after the invoice was made it was paid
               least($6::timestamptz, p.created_at + greatest(p.settled_at - p.added_at, interval '0')), $6, false
          from paid p join transactions t on t.id = p.transaction_id
         where not exists (select 1 from ledger.part d where d.key = 'dep:' || lower('${LIGHTNING.code}') || ':' || p.payment_hash || ':0')
        on conflict (currency, txid, vout) do nothing
        returning transaction_id),
      marked as (insert into due_marks (transaction_id) select transaction_id from made returning 1),
      read as (
        insert into lightning_nodes (identity, settle_index, seen_at) select $5, max(settle_index), $6 from said having $5::text is not null
        on conflict (identity) do update set settle_index = greatest(lightning_nodes.settle_index, excluded.settle_index), seen_at = excluded.seen_at)
      select count(*)::integer as n, case when count(*) > 0 then pg_notify('judge', '${LIGHTNING.code}') end from marked`,
    values: [
      settled.map((one) => one.paymentHash),
      settled.map((one) => one.paidMsat),
      settled.map((one) => new Date(one.settledAtMs ?? atMs).toISOString()),
      settled.map((one) => one.settleIndex),
      node,
      new Date(atMs),
      settled.map((one) => new Date(one.addedAtMs).toISOString()),
    ],
  });
  return rows[0]?.n ?? 0;
}

/** Whether each of these invoices of ours is recorded as paid. */
export async function areSettled(sql: Sql, paymentHashes: readonly string[]): Promise<boolean> {
  const { rows } = await sql.query<{ open: boolean }>({
    name: 'are_settled',
    text: `select exists (select from lightning_invoices where payment_hash = any ($1) and state <> 'settled') as open`,
    values: [paymentHashes],
  });
  return rows[0]?.open === false;
}

/** Up to which settlement a node was read; null for one that was never seen. */
export async function readSettleIndex(sql: Sql, identity: string): Promise<bigint | null> {
  const { rows } = await sql.query<{ settle_index: bigint }>({
    name: 'read_settle_index',
    text: 'select settle_index from lightning_nodes where identity = $1',
    values: [identity],
  });
  return rows[0]?.settle_index ?? null;
}

/** The node has forgotten invoices (it was restored) and counts them anew: its settlements and its list are read from the first one. */
export async function readFromFirst(sql: Sql, identity: string): Promise<void> {
  await sql.query({
    name: 'read_from_first',
    text: 'update lightning_nodes set settle_index = 0, compared_index = 0 where identity = $1',
    values: [identity],
  });
}

/** The transactions over Lightning that rule 8 wants to look up once more, with their payment hashes. */
export async function wantedInvoices(
  sql: Sql,
  limit: number,
): Promise<readonly { readonly transactionId: string; readonly paymentHash: string }[]> {
  const { rows } = await sql.query<{ transaction_id: string; payment_hash: string }>({
    name: 'wanted_invoices',
    text: `select t.id as transaction_id, i.payment_hash from transactions t join lightning_invoices i on i.transaction_id = t.id
            where t.currency = '${LIGHTNING.code}' and t.lookup_wanted and t.status = 'timedout' order by t.id limit $1`,
    values: [limit],
  });
  return rows.map((row) => ({ transactionId: row.transaction_id, paymentHash: row.payment_hash }));
}
