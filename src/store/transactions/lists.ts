// A merchant's transactions as lists: by label, status, currency and time, each page found by an index.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import { TRANSACTION_STATUSES, type TransactionStatus } from '../../core/transaction-states.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { CHECK_COLUMNS, type CheckRow, checkRow, type RawCheck, storedRate } from './transactions.ts';

export type ListFilter = {
  readonly merchantId: bigint;
  readonly limit: number;
  readonly startingAfter: string | null;
  readonly status: TransactionStatus | null;
  readonly currency: CurrencyCode | null;
  readonly label: string | null;
  readonly createdGteMs: number | null;
  readonly createdLtMs: number | null;
};
export type ListedTransaction = CheckRow & {
  readonly label: string | null;
  readonly address: string;
  readonly rate: Rate;
  readonly expiresAtMs: number;
};

type RawListed = RawCheck & { label: string | null; address: string; rate: string; window_ends_at: Date };

const LISTED = `${CHECK_COLUMNS}, t.label, t.address, t.rate, t.window_ends_at`;
const NEWEST = 'order by t.created_at desc, t.id desc limit (select $2::integer)';
/** A page is found in milliseconds; what takes longer (a label on very many transactions, and a status that few of them have) is given up. */
export const LISTED_WITHIN_MS = 1_500;

/** The merchant's transactions, newest first (ties by id), one more than `limit` where there are more. */
export async function listTransactionRows(db: Database, filter: ListFilter): Promise<ListedTransaction[]> {
  const { rows } = await limited(db, filter, (sql) => sql.query<RawListed>(statementOf(filter)));
  return rows.map((row) => ({
    ...checkRow(row),
    label: row.label,
    address: row.address,
    rate: storedRate(row.rate),
    expiresAtMs: row.window_ends_at.getTime(),
  }));
}

/** Without a filter the page stands together in an index, and needs no limit. */
function limited<T>(db: Database, { status, currency, label }: ListFilter, work: (sql: Sql) => Promise<T>): Promise<T> {
  if (status === null && currency === null && label === null) return work(db);
  return db.transaction(async (sql) => {
    await sql.query({ text: `set local statement_timeout = ${LISTED_WITHIN_MS}` });
    return work(sql);
  });
}

/**
 * Only the conditions that were sent are in the statement: the index then finds a page far down without counting. The limit is in a subselect
 * for the same reason as in readChecks.
 */
function statementOf(filter: ListFilter) {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms));
  // a list by status alone takes the newest of each currency, one by currency alone the newest of each status: so one index has both in order
  const each =
    filter.label !== null || (filter.status === null) === (filter.currency === null)
      ? null
      : filter.status === null
        ? (['status', TRANSACTION_STATUSES] as const)
        : (['currency', CURRENCY_CODES] as const);
  const wishes = [
    [
      'after',
      filter.startingAfter,
      '(t.created_at, t.id) < (select a.created_at, a.id from transactions a where a.id = ? and a.merchant_id = $1)',
    ],
    ['status', filter.status, 't.status = ?'],
    ['currency', filter.currency, 't.currency = ?'],
    ['label', filter.label, 't.label = ?'],
    ['gte', time(filter.createdGteMs), 't.created_at >= ?'],
    ['lt', time(filter.createdLtMs), 't.created_at < ?'],
  ] as const;
  const given = wishes.filter(([, value]) => value !== null);
  const wanted = ['t.merchant_id = $1', ...given.map(([, , condition], index) => condition.replace('?', `$${index + 3}`))];
  const from =
    each === null
      ? `transactions t where ${wanted.join(' and ')}`
      : `unnest('{${each[1].join()}}'::text[]) e (value) cross join lateral (
           select * from transactions t where ${[...wanted, `t.${each[0]} = e.value`].join(' and ')} ${NEWEST}) t`;
  return {
    name: ['list', ...given.map(([name]) => name)].join('_'),
    text: `select ${LISTED} from ${from} ${NEWEST}`,
    values: [filter.merchantId, filter.limit + 1, ...given.map(([, value]) => value)],
  };
}
