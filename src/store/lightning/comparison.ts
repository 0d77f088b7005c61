// How far the node's own list of invoices was compared with the books: what it says is settled is kept as a receipt. What the audit asks of the
// receipts is in `audit`.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { InvoiceFacts } from '../../core/lightning/port.ts';
import type { Sql } from '../postgres/connect.ts';
import { SETTLED_HASH, SETTLED_HEIGHT } from './invoices.ts';

/** In the place of {@link SETTLED_HASH} where an operator, and not the node, has said that it was paid. */
const ACCEPTED_HASH = 'accepted';

/** SQL: whether a node's list that was read to its end since should have the payment `p`. */
export const OVERDUE = `p.seen_at < (select max(compared_at) from lightning_nodes) - interval '10 minutes'`;

/** Up to which of a node's invoices everything was compared. */
export async function readCompared(sql: Sql, identity: string): Promise<bigint> {
  const { rows } = await sql.query<{ compared_index: bigint }>({
    name: 'read_compared',
    text: 'select compared_index from lightning_nodes where identity = $1',
    values: [identity],
  });
  return rows[0]?.compared_index ?? 0n;
}

/** Those of these invoices that we asked for. */
export async function ourInvoices(sql: Sql, paymentHashes: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ payment_hash: string }>({
    name: 'our_invoices',
    text: 'select payment_hash from lightning_invoices where payment_hash = any ($1)',
    values: [paymentHashes],
  });
  return new Set(rows.map((row) => row.payment_hash));
}

/** Keeps what the node lists as settled, where it is ours. */
export async function addLightningReceipts(sql: Sql, settled: readonly InvoiceFacts[]): Promise<void> {
  if (settled.length === 0) return;
  await sql.query({
    name: 'add_lightning_receipts',
    text: `insert into chain_receipts (currency, txid, vout, height, block_hash, coinbase, transaction_id, amount)
           select '${LIGHTNING.code}', s.payment_hash, 0, ${SETTLED_HEIGHT}, '${SETTLED_HASH}', false, t.id, div(s.paid_msat, 1000)
             from unnest($1::text[], $2::numeric[]) as s(payment_hash, paid_msat)
             join lightning_invoices i using (payment_hash) join transactions t on t.id = i.transaction_id
           on conflict do nothing`,
    values: [settled.map((one) => one.paymentHash), settled.map((one) => one.paidMsat)],
  });
}

/**
 * A payment that our node has announced, and that no node lists as settled: an operator has seen that the node was restored from an older state, or
 * replaced, before its list was compared. It counts as compared from now on.
 * @returns its transaction; null when there is no such payment, or it was compared
 */
export async function setReceiptForgotten(sql: Sql, paymentHash: string): Promise<string | null> {
  const { rows } = await sql.query<{ transaction_id: string }>({
    name: 'set_receipt_forgotten',
    text: `insert into chain_receipts (currency, txid, vout, height, block_hash, coinbase, transaction_id, amount)
           select p.currency, p.txid, p.vout, ${SETTLED_HEIGHT}, '${ACCEPTED_HASH}', false, p.transaction_id, p.amount
             from payments p where p.currency = '${LIGHTNING.code}' and p.txid = $1 and p.vout = 0 and p.paid_by is null and ${OVERDUE}
           on conflict do nothing returning transaction_id`,
    values: [paymentHash],
  });
  return rows[0]?.transaction_id ?? null;
}

/**
 * @param compared `index`: up to this invoice of the node nothing changes any more, and everything was compared; `within`: with which database, as
 *   `readLastComparison` says
 */
export async function setCompared(
  sql: Sql,
  identity: string,
  { index, within, atMs }: { readonly index: bigint; readonly within: string; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'set_compared',
    text: `insert into lightning_nodes (identity, seen_at, compared_index, compared_at, compared_in) values ($1, $3, $2, $3, $4)
             on conflict (identity) do update set compared_index = excluded.compared_index, compared_at = excluded.compared_at, compared_in = excluded.compared_in`,
    values: [identity, index, new Date(atMs), within],
  });
}

/** Fractions of a satoshi that payers gave too much, or that fees were rounded up by: whole satoshis of them that are not booked yet, and all so far. */
export async function unbookedFractions(sql: Sql): Promise<{ readonly all: bigint; readonly unbooked: bigint }> {
  const { rows } = await sql.query<{ all_sat: string; booked: string }>({
    name: 'unbooked_fractions',
    text: `select div((select coalesce(sum(paid_msat % 1000), 0) from lightning_invoices where state = 'settled')
                      -- fees are charged in whole satoshis
                      + (select coalesce(sum(greatest(p.fee * 1000 - l.fee_msat, 0)), 0) from lightning_payments l join payouts p on p.id = l.payout_id
                          where l.state = 'paid' and p.status = 'completed'), 1000)::text as all_sat,
                  (select coalesce(-sum(p.amount), 0)::text from ledger.posting p join ledger.account a on a.id = p.account_id
                    where a.code = 'income:rounding:${LIGHTNING.balance}') as booked`,
    values: [],
  });
  const all = BigInt(rows[0]?.all_sat ?? 0);
  return { all, unbooked: all - BigInt(rows[0]?.booked ?? 0) };
}

/** What the books have at our node: what payments brought and payouts left there, and its operator's, and how much of it open payouts were committed for. Satoshis. */
export async function readBookedThere(sql: Sql): Promise<{ readonly whole: bigint; readonly onItsWay: bigint }> {
  const { rows } = await sql.query<{ whole: string; out: string }>({
    name: 'read_booked_at_node',
    text: `select coalesce(sum(amount), 0)::text as whole, coalesce(sum(amount) filter (where kind = 'asset_lightning_outbound'), 0)::text as out
             from ledger.account_balance where kind in ('asset_lightning', 'asset_lightning_outbound', 'asset_lightning_operator')`,
    values: [],
  });
  return { whole: BigInt(rows[0]?.whole ?? 0), onItsWay: BigInt(rows[0]?.out ?? 0) };
}

/** Whether a payment of a customer is recorded, and its transaction not decided yet: the node has it, and the books do not. */
export async function isUnbooked(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ some: boolean }>({
    name: 'is_lightning_unbooked',
    text: `select exists (select from decided_payments where currency = '${LIGHTNING.code}' and part_key is null)
               or exists (select from lightning_invoices i where i.state = 'settled'
                             and not exists (select from payments p where p.currency = '${LIGHTNING.code}' and p.txid = i.payment_hash)) as some`,
    values: [],
  });
  return rows[0]?.some === true;
}

/** Locks a node's row: what an operator books of what is missing there is in the books, or not yet, until this database transaction ends. */
export async function lockHoldings(sql: Sql, identity: string): Promise<void> {
  await sql.query({
    name: 'lock_holdings',
    text: 'select from lightning_nodes where identity = $1 for update',
    values: [identity],
  });
}

/** Keeps what a node had in its channels and its wallet, and the books there. */
export async function setHoldings(
  sql: Sql,
  identity: string,
  { atNode, bookedThere, atMs }: { readonly atNode: bigint; readonly bookedThere: bigint; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'set_lightning_holdings',
    text: 'update lightning_nodes set at_node = $2, booked_there = $3, held_at = $4 where identity = $1',
    values: [identity, atNode, bookedThere, new Date(atMs)],
  });
}
