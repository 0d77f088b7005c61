// The way into the ledger: one function that posts (ledger.post does the rest), the locked balances of a merchant, and the roll-up of the
// house's own accounts. Called by the lives, inside their database transaction.
import type { CurrencyCode } from '../core/currency.ts';
import type { Balances, Entry } from '../core/judge/case.ts';
import type { Sql } from './connect.ts';

/** So many entries are posted in one statement: a transaction paid in thousands of outputs must not run into the time limit of one. */
const ENTRIES_AT_ONCE = 500;

/**
 * Posts balanced entries in their order. A key that was posted before with the same lines changes nothing.
 * @param owner.at the service's time, milliseconds
 */
export async function postEntries(
  sql: Sql,
  entries: readonly Entry[],
  owner: { readonly transactionId: string | null; readonly at: number },
): Promise<void> {
  if (entries.length === 0) return;
  const ids = await entryIds(
    sql,
    entries.flatMap((entry) => (entry.reversesKey === null ? [] : [entry.reversesKey])),
  );
  for (let from = 0; from < entries.length; from += ENTRIES_AT_ONCE) {
    await postSome(sql, entries.slice(from, from + ENTRIES_AT_ONCE), ids, owner);
  }
}

async function postSome(
  sql: Sql,
  entries: readonly Entry[],
  ids: ReadonlyMap<string, bigint>,
  owner: { readonly transactionId: string | null; readonly at: number },
): Promise<void> {
  await sql.query({
    name: 'ledger_post',
    text: `select p.entry_id from unnest($1::text[], $2::text[], $3::jsonb[], $4::bigint[]) with ordinality as t(key, kind, lines, reverses_id, n),
                  lateral ledger.post(t.key, t.kind, t.lines, $5, $6, null, t.reverses_id) p order by t.n`,
    values: [
      entries.map((entry) => entry.key),
      entries.map((entry) => entry.kind),
      entries.map((entry) => JSON.stringify(entry.lines.map((line) => ({ a: line.account, v: line.amount.toString() })))),
      entries.map((entry) => (entry.reversesKey === null ? null : ids.get(entry.reversesKey))),
      new Date(owner.at),
      owner.transactionId,
    ],
  });
}

async function entryIds(sql: Sql, keys: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
  if (keys.length === 0) return new Map();
  const { rows } = await sql.query<{ key: string; id: bigint }>({
    name: 'ledger_entry_ids',
    text: 'select key, id from ledger.entry where key = any ($1)',
    values: [keys],
  });
  const ids = new Map(rows.map((row) => [row.key, row.id]));
  const missing = keys.find((key) => !ids.has(key));
  if (missing !== undefined) throw new Error(`the ledger has no entry ${missing}`);
  return ids;
}

/** Locks the merchant's available and receivable rows of these currencies until the transaction ends, and reads them. */
export async function lockBalances(sql: Sql, merchantId: bigint, currencies: readonly CurrencyCode[]): Promise<Balances> {
  const available = (currency: CurrencyCode) => `merchant:${merchantId}:available:${currency}`;
  const receivable = (currency: CurrencyCode) => `asset:receivable:merchant:${merchantId}:${currency}`;
  const { rows } = await sql.query<{ code: string; amount: string }>({
    name: 'ledger_lock_balances',
    text: 'select code, amount from ledger.lock_balances($1)',
    values: [currencies.flatMap((currency) => [available(currency), receivable(currency)])],
  });
  const amounts = new Map(rows.map((row) => [row.code, BigInt(row.amount)]));
  return new Map(
    currencies.map((currency) => [
      currency,
      { available: amounts.get(available(currency)) ?? 0n, receivable: amounts.get(receivable(currency)) ?? 0n },
    ]),
  );
}

/** Moves queued postings into the house's balances; returns how many entries it took. */
export async function rollUp(sql: Sql, limit: number): Promise<number> {
  const { rows } = await sql.query<{ n: number }>({
    name: 'ledger_roll_up',
    text: 'select ledger.roll_up($1) as n',
    values: [limit],
  });
  return rows[0]?.n ?? 0;
}

export type BalanceEntryRow = {
  readonly entryId: bigint;
  readonly currency: CurrencyCode;
  /** Signed: + into the balance. */
  readonly amount: bigint;
  readonly balanceAfter: bigint;
  readonly kind: string;
  readonly transactionId: string | null;
  readonly payoutId: string | null;
  readonly createdAtMs: number;
};

/** The entries that made a merchant's available balance, newest first; one more than `limit` where there are more. */
export async function balanceEntries(
  sql: Sql,
  merchantId: bigint,
  page: { readonly currency: CurrencyCode | null; readonly limit: number; readonly beforeEntryId: bigint | null },
): Promise<BalanceEntryRow[]> {
  const { rows } = await sql.query<{
    entry_id: bigint;
    currency: CurrencyCode;
    amount: string;
    balance_after: string;
    kind: string;
    transaction_id: string | null;
    payout_id: string | null;
    created_at: Date;
  }>({
    name: 'ledger_balance_entries',
    text: `select e.id as entry_id, p.currency, -p.amount as amount, p.balance_after, e.kind, e.transaction_id, e.payout_id, e.created_at
             from ledger.account a join ledger.posting p on p.account_id = a.id join ledger.entry e on e.id = p.entry_id
            where a.merchant_id = $1 and a.kind = 'available' and ($2::text is null or a.currency = $2) and ($3::bigint is null or p.entry_id < $3)
            order by p.entry_id desc, p.line desc limit $4`,
    values: [merchantId, page.currency, page.beforeEntryId, page.limit + 1],
  });
  return rows.map((row) => ({
    entryId: row.entry_id,
    currency: row.currency,
    amount: BigInt(row.amount),
    balanceAfter: BigInt(row.balance_after),
    kind: row.kind,
    transactionId: row.transaction_id,
    payoutId: row.payout_id,
    createdAtMs: row.created_at.getTime(),
  }));
}
