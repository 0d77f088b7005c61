// Payouts to addresses of other merchants' transactions here: the next one to book, and the payment that it becomes.
import { createHash } from 'node:crypto';
import type { Sql } from '../postgres/connect.ts';
import { owesOf, STOPPED } from './hold-facts.ts';
import { lockPayout, type PayoutRow } from './payouts.ts';

export type InternalPayout = PayoutRow & { readonly internalTo: string };

/** Locks the oldest one that may be booked now: not while payouts are stopped, nor while its merchant owes something. Null = there is none. */
export async function lockInternal(sql: Sql): Promise<InternalPayout | null> {
  const { rows } = await sql.query<{ id: string; internal_to: string }>({
    name: 'lock_internal_payout',
    text: `select p.id, p.internal_to from payouts p
            where p.step = 'queued' and p.internal_to is not null and not (select stopped from (select ${STOPPED}) s) and not ${owesOf('p.merchant_id')}
            order by p.created_at, p.id limit 1 for update of p skip locked`,
    values: [],
  });
  const [row] = rows;
  const payout = row === undefined ? null : await lockPayout(sql, row.id, { wait: true });
  return payout === null || row === undefined ? null : { ...payout, internalTo: row.internal_to };
}

/** Writes the payment of the receiving transaction, which its judge looks at next. */
export async function insertInternalPayment(sql: Sql, payout: InternalPayout, atMs: number): Promise<void> {
  // looks like any other, and is the txid of nothing
  const txid = createHash('sha256').update(`internal ${payout.id}`).digest('hex');
  await sql.query({
    name: 'insert_internal_payment',
    text: `with made as (
             insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, height, block_hash, block_time, last_height, seen_at,
                                   caught_up_at, found_mined, spent, paid_by)
               select $1, $2, $3, 0, $4, decode($3, 'hex'), 'mined', 0, coalesce((select hash from blocks where currency = $1 and height = 0), $3), $5, 0, $5,
                      $5, true, true, $6 returning transaction_id)
           insert into due_marks (transaction_id) select transaction_id from made`,
    values: [payout.currency, payout.internalTo, txid, payout.amount, new Date(atMs), payout.id],
  });
  await sql.query({ name: 'wake_judge', text: `select pg_notify('hurry', 'judge')`, values: [] });
}
