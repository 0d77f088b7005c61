// A merchant's transactions as lists: by label, status, currency and time, each page found by an index.
import { CURRENCY_CODES, type PaymentMethod } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import { TRANSACTION_STATUSES, type TransactionStatus } from '../../core/transaction-states.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { CHECK_COLUMNS, type CheckRow, checkRow, type RawCheck, storedRate } from './transactions.ts';

export type ListFilter = {
  readonly merchantId: bigint;
  readonly limit: number;
  readonly startingAfter: string | null;
  readonly status: TransactionStatus | null;
  readonly currency: PaymentMethod | null;
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
 * for the same reason as in readChecks. Filters are ranges of an index from its first column on, in the order of that index, and not
 * equations: for those the planner guesses how many rows have the value, and where most have, it reads the others in vain.
 */
function statementOf(filter: ListFilter) {
  const values: unknown[] = [filter.merchantId, filter.limit + 1];
  const put = (value: unknown): string => `$${values.push(value)}`;
  const places = placesOf(filter, put);
  const columns = Object.keys(places).map((column) => `t.${column}`);
  const at = Object.values(places);
  const wanted: string[] = [];
  const compare = (more: readonly string[], operator: string, with_: readonly string[]): void => {
    wanted.push(`(${[...columns, ...more].join()}) ${operator} (${[...at, ...with_].join()})`);
  };
  if (filter.startingAfter === null) compare([], '<=', []);
  else {
    const after = put(filter.startingAfter);
    const time = `(select a.created_at from transactions a where a.id = ${after} and a.merchant_id = $1)`;
    compare(['t.created_at', 't.id'], '<', [time, after]);
  }
  if (filter.createdGteMs === null) compare([], '>=', []);
  else compare(['t.created_at'], '>=', [put(new Date(filter.createdGteMs))]);
  if (filter.createdLtMs !== null) compare(['t.created_at'], '<', [put(new Date(filter.createdLtMs))]);
  // the label's index has only transactions with one, and neither status nor currency
  if (filter.label !== null) wanted.push('t.label is not null');
  if (filter.label !== null && filter.status !== null) wanted.push(`t.status = ${put(filter.status)}`);
  if (filter.label !== null && filter.currency !== null) wanted.push(`t.currency = ${put(filter.currency)}`);
  const newest = (keys: readonly string[]) =>
    `order by ${[...keys, 't.created_at', 't.id'].map((key) => `${key} desc`).join()} limit (select $2::integer)`;
  const page = `from transactions t where ${wanted.join(' and ')} ${newest(columns)}`;
  const each = EACH[at.at(-1) === 'e.value' ? 'currency' : at.at(-2) === 'e.value' ? 'status' : 'none'];
  const { startingAfter: after, status, currency, label, createdGteMs: gte, createdLtMs: lt } = filter;
  const given = Object.entries({ after, status, currency, label, gte, lt }).flatMap(([name, value]) =>
    value === null ? [] : [name],
  );
  return {
    name: ['list_transactions', ...given].join('_'),
    text: `select ${LISTED} ${each === null ? page : `from ${each} cross join lateral (select * ${page}) t ${newest([])}`}`,
    values,
  };
}

const eachOf = (all: readonly string[]): string => `unnest('{${all.join()}}'::text[]) e (value)`;
const EACH = { none: null, status: eachOf(TRANSACTION_STATUSES), currency: eachOf(CURRENCY_CODES) } as const;

/**
 * The first columns of the index that finds this list, with what they must be. A list by status alone takes the newest of each currency, one
 * by currency alone the newest of each status (`e.value`): so one index has both in order.
 */
function placesOf({ label, status, currency }: ListFilter, put: (value: unknown) => string): Readonly<Record<string, string>> {
  if (label !== null) return { label: put(label), merchant_id: '$1' };
  if (status === null && currency === null) return { merchant_id: '$1' };
  return {
    merchant_id: '$1',
    status: status === null ? 'e.value' : put(status),
    currency: currency === null ? 'e.value' : put(currency),
  };
}
