// What a verdict has decided of very many payments: kept beside their rows by the database transaction of the verdict, which locks none of
// them, and written to the rows afterwards in portions (db: payment_decisions). Until all are written nothing else is decided about the
// transaction.
import type { Payment } from '../../core/judge/case.ts';
import { arrayText } from '../postgres/array-text.ts';
import type { Sql } from '../postgres/connect.ts';
import { inPreparedParts } from '../postgres/in-parts.ts';
import { JUDGED_COLUMNS } from './judged-columns.ts';

/** The largest number of rows in one statement: more would occupy this process for long. */
const ROWS_AT_ONCE = 2_000;

/** What was decided of one payment; `nowMs`: when. */
export type PaymentDecision = { readonly transactionId: string; readonly payment: Payment; readonly nowMs: number };

const COLUMNS = JUDGED_COLUMNS.map(({ column }) => column).join(', ');

/** Keeps what was decided, to be written later. Of a payment of which something is kept already nothing may be decided. */
export function keepDecisions(sql: Sql, decisions: readonly PaymentDecision[]): Promise<void> {
  return inPreparedParts(decisions, ROWS_AT_ONCE, {
    prepare: (part) => [
      arrayText(part.map(({ transactionId }) => transactionId)),
      arrayText(part.map(({ payment }) => payment.id)),
      arrayText(part.map(({ nowMs }) => new Date(nowMs))),
      arrayText(part.map(({ payment }) => payment.classified)),
      ...JUDGED_COLUMNS.map(({ field, write }) => arrayText(part.map(({ payment }) => write(payment[field])))),
    ],
    run: (values) =>
      sql.query({
        name: 'keep_payment_decisions',
        text: `insert into payment_decisions (transaction_id, payment_id, decided_at, classified, ${COLUMNS})
                 select * from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::boolean[],
                                      ${JUDGED_COLUMNS.map(({ type }, n) => `$${n + 5}::${type}[]`).join(', ')})`,
        values,
      }),
  });
}

/**
 * Writes what was decided of some payments of a transaction to their rows. The caller holds the lock of the transaction's row.
 * @param most of how many payments at most
 * @returns whether something is still kept
 */
export async function writeDecisions(sql: Sql, transactionId: string, most: number): Promise<boolean> {
  const { rows } = await sql.query<{ payment_id: bigint }>({
    name: 'next_payment_decisions',
    text: 'select payment_id from payment_decisions where transaction_id = $1 order by payment_id limit $2',
    values: [transactionId, most],
  });
  const ids = arrayText(rows.map((row) => row.payment_id));
  // in the order of their ids, as the watchers do
  await sql.query({
    name: 'lock_decided_payments',
    text: 'select from payments where id = any ($1::bigint[]) order by id for no key update',
    values: [ids],
  });
  await sql.query({
    name: 'write_payment_decisions',
    text: `with taken as (delete from payment_decisions where transaction_id = $1 and payment_id = any ($2::bigint[]) returning *)
           update payments p
              set noticed_at = case when d.classified then coalesce(p.noticed_at, d.decided_at) end,
                  ${JUDGED_COLUMNS.map(({ column }) => `${column} = d.${column}`).join(', ')}
             from taken d where p.id = d.payment_id`,
    values: [transactionId, ids],
  });
  return areKept(sql, transactionId);
}

async function areKept(sql: Sql, transactionId: string): Promise<boolean> {
  const { rows } = await sql.query<{ kept: boolean }>({
    name: 'are_payment_decisions_kept',
    text: `select ${IS_UNWRITTEN('$1')} as kept`,
    values: [transactionId],
  });
  return rows[0]?.kept === true;
}

/** SQL: whether something was decided of payments of a transaction that is not written to their rows yet. */
export function IS_UNWRITTEN(transactionId: string): string {
  return `exists (select 1 from payment_decisions d where d.transaction_id = ${transactionId})`;
}
