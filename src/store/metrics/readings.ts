// What an operator's monitoring asks of the database: sums and counts, each found by an index, over all merchants.
import type { CurrencyCode, LedgerCurrency, PaymentMethod } from '../../core/currency.ts';
import type { PayoutStatus } from '../../core/payouts/states.ts';
import type { PayoutMethod } from '../../core/payouts/units.ts';
import type { Sql } from '../postgres/connect.ts';

/** What the service has, by the ledger's accounts; minor units. */
export async function readAssets(
  sql: Sql,
): Promise<readonly { readonly account: string; readonly currency: LedgerCurrency; readonly amount: bigint }[]> {
  const { rows } = await sql.query<{ code: string; currency: LedgerCurrency; amount: string }>({
    name: 'metrics_assets',
    text: `select a.code, a.currency, a.amount::text as amount from ledger.account_balance a
            where a.code >= 'asset:' and a.code < 'asset;' and a.code not like 'asset:receivable:%' order by a.code`,
    values: [],
  });
  return rows.map(({ code, currency, amount }) => ({ account: code, currency, amount: BigInt(amount) }));
}

/** What merchants have, and what of it payouts hold; minor units. */
export async function readOwed(
  sql: Sql,
): Promise<readonly { readonly kind: string; readonly currency: CurrencyCode; readonly amount: bigint }[]> {
  const { rows } = await sql.query<{ kind: string; currency: CurrencyCode; amount: string }>({
    name: 'metrics_owed',
    text: `select a.kind, a.currency, sum(b.amount)::text as amount from ledger.account a join ledger.balance b on b.account_id = a.id
            where a.code >= 'merchant:' and a.code < 'merchant;' group by a.kind, a.currency order by a.kind, a.currency`,
    values: [],
  });
  return rows.map(({ kind, currency, amount }) => ({ kind, currency, amount: BigInt(amount) }));
}

/** Transactions in review, by currency. */
export async function countReviews(sql: Sql): Promise<readonly { readonly currency: PaymentMethod; readonly count: bigint }[]> {
  const { rows } = await sql.query<{ currency: PaymentMethod; count: bigint }>({
    name: 'metrics_reviews',
    text: `select t.currency, count(*) as count from merchants m join transactions t on t.merchant_id = m.id and t.status = 'review'
            group by t.currency order by t.currency`,
    values: [],
  });
  return rows;
}

/** Payouts that have not ended, by method and status. */
export async function countOpenPayouts(
  sql: Sql,
): Promise<readonly { readonly method: PayoutMethod; readonly status: PayoutStatus; readonly count: bigint }[]> {
  const { rows } = await sql.query<{ method: PayoutMethod; status: PayoutStatus; count: bigint }>({
    name: 'metrics_open_payouts',
    text: `select p.method, p.status, count(*) as count
             from merchants m join payouts p on p.merchant_id = m.id and p.status in ('pending', 'processing') and p.reimburses is null
            group by p.method, p.status order by p.method, p.status`,
    values: [],
  });
  return rows;
}

/** Events that webhooks wait for, counted to this limit. */
export async function countDeliveries(sql: Sql, limit: number): Promise<bigint> {
  const { rows } = await sql.query<{ count: bigint }>({
    name: 'metrics_deliveries',
    text: 'select count(*) as count from (select from deliveries limit $1) d',
    values: [limit],
  });
  return rows[0]?.count ?? 0n;
}

/** The number of the newest event; 0 = there is none. */
export async function newestEvent(sql: Sql): Promise<bigint> {
  const { rows } = await sql.query<{ id: bigint | null }>({
    name: 'metrics_newest_event',
    text: 'select max(id) as id from events',
    values: [],
  });
  return rows[0]?.id ?? 0n;
}

/** Events by type, of those after the first number up to the second. */
export async function countEvents(
  sql: Sql,
  { after, upTo }: { readonly after: bigint; readonly upTo: bigint },
): Promise<readonly { readonly type: string; readonly count: bigint }[]> {
  const { rows } = await sql.query<{ type: string; count: bigint }>({
    name: 'metrics_events',
    text: 'select type, count(*) as count from events where id > $1 and id <= $2 group by type',
    values: [after, upTo],
  });
  return rows;
}
