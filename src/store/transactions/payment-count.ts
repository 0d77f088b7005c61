// How many payments a transaction has, as far as that matters: nobody counts hundreds of thousands.
import type { Sql } from '../postgres/connect.ts';

/** The number of payments that a decision reads, or `most` + 1 when there are more. */
export async function countUpTo(sql: Sql, transactionId: string, most: number): Promise<number> {
  const { rows } = await sql.query<{ payments: number }>({
    name: 'count_payments_up_to',
    text: 'select count(*)::int as payments from (select from payments p where p.transaction_id = $1 limit $2) q',
    values: [transactionId, most + 1],
  });
  return rows[0]?.payments ?? 0;
}
