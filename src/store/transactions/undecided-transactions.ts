// Transactions that the judge could not decide. Each rests after a failure, longer every time, so that it delays no other; a row means that
// an operator must look. A verdict deletes it.
import type { Sql } from '../postgres/connect.ts';
import { IS_UNWRITTEN } from './payment-decisions.ts';
import { IS_REPLACED } from './replaced-payments.ts';

const FIRST_REST_SECONDS = 30;
const LONGEST_REST_SECONDS = 3_600;

/** Records a failure of the judge; the transaction is not due again before it has rested. */
export async function recordUndecided(
  sql: Sql,
  failure: { readonly transactionId: string; readonly reason: string; readonly atMs: number },
): Promise<void> {
  const rest = (failures: string) =>
    `clock_timestamp() + make_interval(secs => least(${LONGEST_REST_SECONDS}, ${FIRST_REST_SECONDS} * 2.0 ^ least(20, ${failures})))`;
  await sql.query({
    name: 'set_aside',
    text: `insert into set_aside as s (transaction_id, failures, reason, since, failed_at, rests_until) values ($1, 1, $2, $3, $3, ${rest('0')})
             on conflict (transaction_id) do update set failures = s.failures + 1, reason = excluded.reason, failed_at = excluded.failed_at,
               rests_until = ${rest('s.failures')}`,
    values: [failure.transactionId, failure.reason, new Date(failure.atMs)],
  });
}

export type UndecidedTransaction = {
  readonly transactionId: string;
  readonly failures: number;
  /** The message of the last failure. */
  readonly reason: string;
  readonly sinceMs: number;
};

/** The transactions that are set aside, the longest waiting first. */
export async function readUndecided(sql: Sql, limit: number): Promise<readonly UndecidedTransaction[]> {
  const { rows } = await sql.query<{ transaction_id: string; failures: number; reason: string; since: Date }>({
    name: 'read_set_aside',
    text: 'select transaction_id, failures, reason, since from set_aside order by since, transaction_id limit $1',
    values: [limit],
  });
  return rows.map((row) => ({
    transactionId: row.transaction_id,
    failures: row.failures,
    reason: row.reason,
    sinceMs: row.since.getTime(),
  }));
}

/**
 * Whether a transaction has more payments than this, without those that were replaced before they were booked, and no verdict of it waits to be written to its
 * payments (payment-decisions.ts).
 */
export async function hasMorePayments(sql: Sql, transactionId: string, most: number): Promise<boolean> {
  const { rows } = await sql.query<{ more: boolean }>({
    name: 'has_more_payments',
    text: `select exists (select from payments p where p.transaction_id = $1 and not ${IS_REPLACED('p')} offset $2) and not ${IS_UNWRITTEN('$1')} as more`,
    values: [transactionId, most],
  });
  return rows[0]?.more === true;
}
