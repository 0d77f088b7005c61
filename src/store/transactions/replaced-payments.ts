// Payments that were replaced before they were ever booked. Whoever pays can replace a transaction of thousands of outputs as often as he
// likes, for little: so these are not counted and not read for a decision, as long as nothing depends on them. They stay rows: should a
// reorganisation or a mempool bring one back, it is live again, and read.
import type { Payment } from '../../core/judge/case.ts';
import type { Sql } from '../postgres/connect.ts';
import { PAYMENT_COLUMNS, type PaymentRow, paymentOf } from './case-facts.ts';

/** SQL: whether a payment was replaced, was never booked, and the judge has seen that it is no longer there. */
export const IS_REPLACED = (p: string): string =>
  `(${p}.state = 'conflicted' and not ${p}.present and not ${p}.counted and not ${p}.was_lost and ${p}.part_key is null and ${p}.generation = 0
    and ${p}.owed = 0 and ${p}.owed_fee = 0 and ${p}.due_height is null and ${p}.due_at is null)`;

/**
 * What these payments of a transaction have replaced and nobody reads otherwise, as far as it matters for whether they are on time: of each
 * replaced transaction one payment that stands for all of its outputs; of several that spend the same outpoints the one of which most was
 * on time, since they are one chain of replacements.
 */
export async function readReplacedBy(sql: Sql, transactionId: string, payments: readonly Payment[]): Promise<readonly Payment[]> {
  const replacing = new Map(payments.map(({ currency, txid }) => [`${currency} ${txid}`, { currency, txid }]));
  const { rows } = await sql.query<PaymentRow & { all_amount: string; all_on_time: string; spends: string[] | null }>({
    name: 'read_replaced_payments',
    text: `
      with replaced as (
        select p.currency, p.conflict_txid, p.txid, p.noticed_at is not null as classified, min(p.id) as id, sum(p.amount) as all_amount,
               sum(p.on_time_minor) as all_on_time
          from unnest($2::text[], $3::text[]) as w(currency, txid) join payments p on p.currency = w.currency and p.conflict_txid = w.txid
         where p.transaction_id = $1 and ${IS_REPLACED('p')} group by 1, 2, 3, 4),
      spending as (
        select r.*, (select array_agg(i.prev_txid || ':' || i.prev_vout order by i.prev_txid, i.prev_vout)
                       from payment_inputs i where i.currency = r.currency and i.txid = r.txid) as spends
          from replaced r),
      most as (
        select distinct on (currency, conflict_txid, spends, case when classified and spends is not null then '' else txid end) *
          from spending order by currency, conflict_txid, spends, case when classified and spends is not null then '' else txid end, all_on_time desc)
      select ${PAYMENT_COLUMNS}, m.all_amount::text, m.all_on_time::text, m.spends from most m join payments p on p.id = m.id`,
    values: [transactionId, [...replacing.values()].map((one) => one.currency), [...replacing.values()].map((one) => one.txid)],
  });
  return rows.map((row) => ({
    ...paymentOf(row, null, row.spends ?? []),
    amount: BigInt(row.all_amount),
    onTimeMinor: BigInt(row.all_on_time),
  }));
}

/** The number of payments that a decision reads (not those that were replaced before they were booked), or `most` + 1 when there are more. */
export async function countUpTo(sql: Sql, transactionId: string, most: number): Promise<number> {
  const { rows } = await sql.query<{ payments: number }>({
    name: 'count_payments_up_to',
    text: `select count(*)::int as payments from (select from payments p where p.transaction_id = $1 and not ${IS_REPLACED('p')} limit $2) q`,
    values: [transactionId, most + 1],
  });
  return rows[0]?.payments ?? 0;
}
