// Transactions that wait for a person's decision, over all merchants.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type Review = {
  readonly transactionId: string;
  readonly affiliateId: string;
  readonly status: 'review' | 'declined';
  readonly currency: PaymentMethod;
  readonly usdMinor: bigint;
  readonly amountDue: bigint;
  readonly received: bigint;
  readonly createdAt: Date;
  /** The reason of its last change of status. */
  readonly reason: string | null;
  /** What it has in suspense, by currency. */
  readonly suspense: readonly { readonly currency: PaymentMethod; readonly amount: bigint }[];
};

/** Transactions in `review`, and on request those in `declined` with payments in suspense; the oldest first. */
export async function listReviews(
  sql: Sql,
  options: { readonly declined: boolean; readonly currency?: PaymentMethod | undefined; readonly limit: number },
): Promise<readonly Review[]> {
  const { rows } = await sql.query<{
    id: string;
    affiliate_id: string;
    status: 'review' | 'declined';
    currency: PaymentMethod;
    usd_minor: bigint;
    amount_due: string;
    crypto_received: string;
    created_at: Date;
    reason: string | null;
    suspense: readonly { currency: PaymentMethod; amount: string }[] | null;
  }>({
    name: 'list_reviews',
    text: `select t.id, m.affiliate_id, t.status, t.currency, t.usd_minor, t.amount_due, t.crypto_received, t.created_at,
                  (select e.reason from events e where e.object_id = t.id and e.status = t.status order by e.sequence desc limit 1) as reason,
                  s.suspense
             from merchants m join transactions t on t.merchant_id = m.id and t.status = any ($1::text[])
             left join lateral (select jsonb_agg(jsonb_build_object('currency', x.currency, 'amount', x.amount::text) order by x.currency) as suspense
                                  from (select currency, sum(in_suspense) as amount from decided_payments p where p.transaction_id = t.id
                                         group by currency having sum(in_suspense) > 0) x) s on true
            where (t.status = 'review' or s.suspense is not null) and ($3::text is null or t.currency = $3)
            order by t.created_at, t.id limit $2`,
    values: [options.declined ? ['review', 'declined'] : ['review'], options.limit, options.currency ?? null],
  });
  return rows.map((row) => ({
    transactionId: row.id,
    affiliateId: row.affiliate_id,
    status: row.status,
    currency: row.currency,
    usdMinor: row.usd_minor,
    amountDue: BigInt(row.amount_due),
    received: BigInt(row.crypto_received),
    createdAt: row.created_at,
    reason: row.reason,
    suspense: (row.suspense ?? []).map(({ currency, amount }) => ({ currency, amount: BigInt(amount) })),
  }));
}
