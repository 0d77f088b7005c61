// How many payments a transaction has, counted only up to the limit that is asked about.
import type { Sql } from '../postgres/connect.ts';
import { IS_REPLACED } from './replaced-payments.ts';

/** The number of payments that a decision reads (not those that were replaced before they were booked), or `most` + 1 when there are more. */
export async function countUpTo(sql: Sql, transactionId: string, most: number): Promise<number> {
  const { rows } = await sql.query<{ payments: number }>({
    name: 'count_payments_up_to',
    text: `select count(*)::int as payments from (select from payments p where p.transaction_id = $1 and not ${IS_REPLACED('p')} limit $2) q`,
    values: [transactionId, most + 1],
  });
  return rows[0]?.payments ?? 0;
}
