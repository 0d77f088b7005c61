// What was seen of a transaction, for its page of the portal: each payment in its own currency, and what of it lies where.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type PaymentSeen = {
  readonly currency: PaymentMethod;
  readonly txid: string;
  readonly minor: bigint;
  readonly confirmations: number;
  readonly seenAtMs: number;
  readonly counted: boolean;
};
/** Of all payments in one currency. */
export type LiesWhere = {
  readonly currency: PaymentMethod;
  readonly payments: number;
  readonly inAvailable: bigint;
  readonly inSuspense: bigint;
};

/** Anybody may pay in as many outputs as he likes; nobody reads more than these. */
export const MOST_SEEN = 100;

/** The payments of a transaction, the newest first, {@link MOST_SEEN} at most. */
export async function readPaymentsSeen(sql: Sql, id: string): Promise<readonly PaymentSeen[]> {
  type Row = Omit<PaymentSeen, 'minor' | 'seenAtMs'> & { amount: string; seen_at: Date };
  const { rows } = await sql.query<Row>({
    name: 'read_payments_seen',
    text: `select p.currency, p.txid, p.amount, greatest(p.seen_at, t.created_at) as seen_at, p.counted,
                  case when p.height is null then 0 else greatest(0, coalesce(c.height, p.height) - p.height + 1) end as confirmations
             from decided_payments p join transactions t on t.id = p.transaction_id left join chain_cursors c on c.currency = p.currency
            where p.transaction_id = $1 order by p.seen_at desc, p.id desc limit ${MOST_SEEN}`,
    values: [id],
  });
  return rows.map(({ amount, seen_at, ...row }) => ({ ...row, minor: BigInt(amount), seenAtMs: seen_at.getTime() }));
}

/** Where the payments of a transaction lie, by currency. */
export async function readLiesWhere(sql: Sql, id: string): Promise<readonly LiesWhere[]> {
  type Row = { currency: PaymentMethod; payments: number; available: string; suspense: string };
  const { rows } = await sql.query<Row>({
    name: 'read_lies_where',
    text: `select currency, count(*)::int as payments, sum(in_available) as available, sum(in_suspense) as suspense
             from decided_payments where transaction_id = $1 group by currency order by currency`,
    values: [id],
  });
  return rows.map(({ currency, payments, available, suspense }) => ({
    currency,
    payments,
    inAvailable: BigInt(available),
    inSuspense: BigInt(suspense),
  }));
}
