// The node's own list of invoices against the books: what it says is settled is kept as a receipt, and the audit compares receipts, payments and
// ledger.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { InvoiceFacts } from '../../core/lightning/port.ts';
import type { Question } from '../ledger/audit.ts';
import type { Sql } from '../postgres/connect.ts';
import { SETTLED_HASH, SETTLED_HEIGHT } from './invoices.ts';
import { OVER_LIGHTNING } from './outgoing.ts';

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

/** @param comparedIndex up to this invoice of the node nothing changes any more, and everything was compared */
export async function setCompared(sql: Sql, identity: string, comparedIndex: bigint, atMs: number): Promise<void> {
  await sql.query({
    name: 'set_compared',
    text: `insert into lightning_nodes (identity, seen_at, compared_index, compared_at) values ($1, $3, $2, $3)
             on conflict (identity) do update set compared_index = excluded.compared_index, compared_at = excluded.compared_at`,
    values: [identity, comparedIndex, new Date(atMs)],
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

export const OF_LIGHTNING: readonly Question[] = [
  {
    id: 'LN-1',
    says: 'every invoice that the Lightning node lists as settled is a payment of its amount, and the ledger has what it brought',
    text: `select r.txid || ' of ' || r.amount || ' to ' || r.transaction_id || case
                    when p.id is null then ' is no payment'
                    when p.amount <> r.amount then ' is recorded as ' || p.amount
                    else ' is recorded for ' || p.transaction_id end as what
             from chain_receipts r left join payments p on p.currency = r.currency and p.txid = r.txid and p.vout = r.vout
            where r.currency = '${LIGHTNING.code}' and (p.id is null or p.amount <> r.amount or p.transaction_id <> r.transaction_id)
           union all
           select p.txid || ' of ' || p.amount || ' is booked as ' || d.amount
             from payments p join ledger.part d on d.key = p.part_key where p.currency = '${LIGHTNING.code}' and d.amount <> p.amount`,
  },
  {
    id: 'LN-2',
    says: 'every payment over Lightning is an invoice that the node lists as settled',
    text: `select p.txid || ' of ' || p.amount || ' to ' || p.transaction_id || ' is a payment, and the node does not list its invoice as settled' as what
             from payments p
            where p.currency = '${LIGHTNING.code}' and p.paid_by is null and p.seen_at < (select max(compared_at) from lightning_nodes) - interval '10 minutes'
              and not exists (select 1 from chain_receipts r where r.currency = p.currency and r.txid = p.txid and r.vout = p.vout)`,
  },
  {
    id: 'LN-3',
    says: 'every settled invoice of ours has its transaction and its payment',
    text: `select i.payment_hash || ' of ' || i.paid_msat || ' msat was paid, and ' || i.transaction_id || ' has no such payment' as what
             from lightning_invoices i
            where i.state = 'settled' and not exists (select 1 from payments p where p.currency = '${LIGHTNING.code}' and p.txid = i.payment_hash)`,
  },
  {
    id: 'LN-4',
    says: 'what the ledger holds at the Lightning node is what payments brought, less what payouts have taken, and the capital and fractions that are booked',
    text: `select 'ledger ' || l.amount || ', payments less payouts and the rest ' || r.amount as what
             from (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_lightning') l
             cross join (select coalesce((select sum(amount) from decided_payments where currency = '${LIGHTNING.code}' and part_key is not null), 0)
                              - coalesce((select sum(amount) from (${OVER_LIGHTNING}) o), 0)
                              + coalesce((select sum(p.amount) from ledger.posting p join ledger.account a on a.id = p.account_id and a.kind = 'asset_lightning'
                                            join ledger.entry e on e.id = p.entry_id where e.kind in ('capital', 'lightning_rounding', 'unknown_outflow')), 0) as amount) r
            where l.amount <> r.amount`,
  },
  {
    id: 'LN-5',
    says: 'what the Lightning node lists as paid, or under way, is what payouts have asked for, and none that failed was paid',
    text: `select 'node ' || s.node || ' has paid ' || s.payment_hash || ' of ' || s.amount_msat || ' msat, fee ' || s.fee_msat || ', which no payout here has asked for'
                  || ' (bursar payout recover)' as what
             from lightning_sent s where s.acknowledged_at is null and not exists (select from lightning_payments l where l.payment_hash = s.payment_hash)
           union all
           select min(l.payout_id) || ' has failed, and node ' || s.node || ' has paid ' || s.payment_hash
             from lightning_sent s join lightning_payments l on l.payment_hash = s.payment_hash join payouts p on p.id = l.payout_id
            where s.acknowledged_at is null and s.state = 'succeeded' group by s.node, s.payment_hash having bool_and(p.status = 'failed')
           union all
           select l.payout_id || ' was paid ' || p.amount || ' for a fee of ' || l.fee_msat || ' msat, and node ' || s.node || ' lists ' || s.amount_msat || ' msat, fee '
                  || s.fee_msat
             from lightning_payments l join payouts p on p.id = l.payout_id
             join lightning_sent s on s.payment_hash = l.payment_hash and s.node = l.node and s.state = 'succeeded'
            where l.state = 'paid' and (s.fee_msat <> l.fee_msat or s.amount_msat <> (p.amount - case when p.reimburses is null then 0 else p.fee_max end) * 1000)
           union all
           select l.payout_id || ' was paid as number ' || l.payment_index || ', and node ' || n.identity || ' does not list it'
             from lightning_payments l join lightning_nodes n on n.identity = l.node
            where l.state = 'paid' and l.payment_index <= n.payments_compared
              and not exists (select from lightning_sent s where s.payment_hash = l.payment_hash and s.node = l.node)`,
  },
  {
    id: 'LN-6',
    says: 'what is on its way out over Lightning is what open payouts were committed for',
    text: `select 'ledger ' || l.amount || ', payouts ' || r.amount as what
             from (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_lightning_outbound') l
             cross join (select coalesce(sum(amount), 0) as amount from (${OVER_LIGHTNING}) o where o.is_open) r where l.amount <> r.amount`,
  },
];
