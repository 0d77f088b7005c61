// Access to the ledger: one function that posts (ledger.post_all does the rest), the locked balances of a merchant, and the roll-up of the
// service's own accounts.
import type { CurrencyCode, LedgerCurrency } from '../../core/currency.ts';
import type { Balances, Entry, Part } from '../../core/judge/case.ts';
import { arrayText } from '../postgres/array-text.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts, inPreparedParts } from '../postgres/in-parts.ts';

/** The largest number of entries in one statement: a transaction paid in thousands of outputs must not run into the statement's time limit. */
const ENTRIES_AT_ONCE = 500;
const PARTS_AT_ONCE = 2_000;

export type EntryToPost = {
  readonly entry: Entry;
  readonly transactionId: string | null;
  readonly payoutId?: string | null;
  /** The service's time, milliseconds. */
  readonly atMs: number;
};

/** Posts balanced entries in their order. A key that was already posted with the same lines changes nothing. */
export function postEntries(sql: Sql, postings: readonly EntryToPost[]): Promise<void> {
  return inParts(postings, ENTRIES_AT_ONCE, (some) => postSome(sql, some));
}

async function postSome(sql: Sql, postings: readonly EntryToPost[]): Promise<void> {
  const entries = postings.map((posting) => posting.entry);
  const parts = entries.flatMap((entry) => entry.parts.map((part) => ({ ...part, entryKey: entry.key })));
  const first = parts.slice(0, PARTS_AT_ONCE);
  const payoutIds = first.length === 0 ? '$6' : '$10';
  await sql.query({
    name: first.length === 0 ? 'ledger_post_all' : 'ledger_post_all_with_parts',
    text: `with posted as materialized (select entry_id from ledger.post_all($1, $2, $3::jsonb[], $4::timestamptz[], $5, ${payoutIds}::text[], null))
           select count(*)${first.length === 0 ? '' : ', ledger.post_parts($6, $7, $8, $9)'} from posted`,
    values: [
      entries.map((entry) => entry.key),
      entries.map((entry) => entry.kind),
      entries.map((entry) => JSON.stringify(entry.postings.map((line) => ({ a: line.account, v: line.amount.toString() })))),
      postings.map((posting) => new Date(posting.atMs).toISOString()),
      postings.map((posting) => posting.transactionId),
      ...(first.length === 0 ? [] : columnsOf(first)),
      postings.map((posting) => posting.payoutId ?? null),
    ],
  });
  await inPreparedParts(parts.slice(PARTS_AT_ONCE), PARTS_AT_ONCE, {
    prepare: columnsOf,
    run: (values) => sql.query({ name: 'ledger_post_parts', text: 'select ledger.post_parts($1, $2, $3, $4)', values }),
  });
}

function columnsOf(parts: readonly (Part & { readonly entryKey: string })[]): unknown[] {
  return [
    arrayText(parts.map((part) => part.entryKey)),
    arrayText(parts.map((part) => part.key)),
    arrayText(parts.map((part) => part.amount)),
    arrayText(parts.map((part) => part.reversesKey)),
  ];
}

const availableOf = (merchantId: bigint, currency: CurrencyCode) => `merchant:${merchantId}:available:${currency}`;
const heldOf = (merchantId: bigint, currency: LedgerCurrency) => `merchant:${merchantId}:held:${currency}`;
const receivableOf = (merchantId: bigint, currency: CurrencyCode) => `asset:receivable:merchant:${merchantId}:${currency}`;

/**
 * Locks the merchant's available and receivable rows of these currencies until the transaction ends, and reads them. What payouts hold is
 * locked with them: entries that touch both then never wait for each other.
 * @param also.heldDollars what payouts to bank accounts hold in dollars too
 */
export async function lockBalances(
  sql: Sql,
  merchantId: bigint,
  currencies: readonly CurrencyCode[],
  also: { readonly heldDollars: boolean } = { heldDollars: false },
): Promise<Balances> {
  const { rows } = await sql.query<{ code: string; amount: string }>({
    name: 'ledger_lock_balances',
    text: 'select code, amount from ledger.lock_balances($1)',
    values: [
      [
        ...currencies.flatMap((currency) => [
          availableOf(merchantId, currency),
          receivableOf(merchantId, currency),
          heldOf(merchantId, currency),
        ]),
        ...(also.heldDollars ? [heldOf(merchantId, 'USD')] : []),
      ],
    ],
  });
  return balancesOf(merchantId, currencies, new Map(rows.map((row) => [row.code, BigInt(row.amount)])));
}

/**
 * As {@link lockBalances} for several merchants at once, each with its currencies; waits for no lock. A merchant one of whose rows is
 * locked by another session is not in the result.
 */
export async function lockFreeBalances(
  sql: Sql,
  wanted: ReadonlyMap<bigint, readonly CurrencyCode[]>,
): Promise<Map<bigint, Balances>> {
  const codes = (merchantId: bigint, currencies: readonly CurrencyCode[]) =>
    currencies.flatMap((currency) => [availableOf(merchantId, currency), receivableOf(merchantId, currency)]);
  if (wanted.size === 0) return new Map();
  const { rows } = await sql.query<{ code: string; amount: string }>({
    name: 'ledger_lock_free_balances',
    text: 'select code, amount from ledger.lock_free_balances($1)',
    values: [[...wanted].flatMap(([merchantId, currencies]) => codes(merchantId, currencies))],
  });
  const amounts = new Map(rows.map((row) => [row.code, BigInt(row.amount)]));
  const free = [...wanted].filter(([merchantId, currencies]) => codes(merchantId, currencies).every((code) => amounts.has(code)));
  return new Map(free.map(([merchantId, currencies]) => [merchantId, balancesOf(merchantId, currencies, amounts)]));
}

function balancesOf(merchantId: bigint, currencies: readonly CurrencyCode[], amounts: ReadonlyMap<string, bigint>): Balances {
  return new Map(
    currencies.map((currency) => [
      currency,
      {
        available: amounts.get(availableOf(merchantId, currency)) ?? 0n,
        receivable: amounts.get(receivableOf(merchantId, currency)) ?? 0n,
      },
    ]),
  );
}

/** Moves queued postings into the balances of the service's own accounts; returns how many entries it took. */
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
  /** Signed: + increases the balance. */
  readonly amount: bigint;
  readonly balanceAfter: bigint;
  readonly kind: string;
  readonly transactionId: string | null;
  readonly payoutId: string | null;
  readonly createdAtMs: number;
};

/** The entries of a merchant's available balance, newest first; one more than `limit` where there are more. */
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
    // the newest of each of the few accounts, and only their entries (the offset keeps them out of a merge join that begins at the ledger's end)
    text: `select e.id as entry_id, p.currency, -p.amount as amount, p.balance_after, e.kind, e.transaction_id, e.payout_id, e.created_at
             from ledger.account a
             cross join lateral (
               select p.* from ledger.posting p where p.account_id = a.id and p.entry_id < coalesce($3::bigint, 9223372036854775807)
                order by p.entry_id desc limit (select $4::integer)) p
             cross join lateral (select * from ledger.entry e where e.id = p.entry_id offset 0) e
            where a.merchant_id = $1 and a.kind = 'available' and ($2::text is null or a.currency = $2)
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

/** Whether an entry is one of a merchant's available balance. */
export async function isBalanceEntry(sql: Sql, merchantId: bigint, entryId: bigint): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'ledger_is_balance_entry',
    text: `select from ledger.posting p join ledger.account a on a.id = p.account_id
            where p.entry_id = $2 and a.merchant_id = $1 and a.kind = 'available'`,
    values: [merchantId, entryId],
  });
  return rowCount !== 0;
}

/** The available balances of a merchant in minor units; a currency that was never booked is left out. */
export async function readAvailable(sql: Sql, merchantId: bigint): Promise<ReadonlyMap<CurrencyCode, bigint>> {
  const { rows } = await sql.query<{ currency: CurrencyCode; amount: string }>({
    name: 'balances_available',
    text: `select a.currency, b.amount from ledger.account a join ledger.balance b on b.account_id = a.id
            where a.merchant_id = $1 and a.kind = 'available'`,
    values: [merchantId],
  });
  return new Map(rows.map((row) => [row.currency, BigInt(row.amount)]));
}
