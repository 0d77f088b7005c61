// Reading transactions: check, wait for a change, list, expand, and the entries that explain a balance. Nothing is changed here.
import type { CurrencyCode, PaymentMethod } from '../../core/currency.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { type BalanceEntryRow, balanceEntries, isBalanceEntry } from '../../store/ledger/ledger.ts';
import { type Expansion, readExpansion } from '../../store/transactions/expand.ts';
import { type ListedTransaction, type ListFilter, listTransactionRows } from '../../store/transactions/lists.ts';
import { type LiesWhere, type PaymentSeen, readLiesWhere, readPaymentsSeen } from '../../store/transactions/payments-seen.ts';
import type { CheckRow } from '../../store/transactions/transactions.ts';
import type { Context } from '../context.ts';

export type TransactionView = {
  readonly transactionId: string;
  readonly status: TransactionStatus;
  readonly currency: PaymentMethod;
  readonly amountDue: bigint;
  readonly receivedMinor: bigint;
  readonly confirmations: number;
  readonly usdMinor: bigint;
  readonly createdAtMs: number;
  readonly confirmedAtMs: number | null;
  readonly version: number;
};

function viewOf(row: CheckRow): TransactionView {
  return {
    transactionId: row.id,
    status: row.status,
    currency: row.currency,
    amountDue: row.amountDue,
    receivedMinor: row.received,
    confirmations: row.confirmations,
    usdMinor: row.usdMinor,
    createdAtMs: row.createdAtMs,
    confirmedAtMs: row.confirmedAtMs,
    version: row.sequence,
  };
}

/** @throws Refusal transaction_not_found, for another merchant's id too */
export async function checkTransaction(
  ctx: Context,
  input: { readonly merchantId: bigint; readonly transactionId: string; readonly param?: string },
): Promise<TransactionView> {
  const row = await ctx.batches.check(input.transactionId);
  if (row === null || row.merchantId !== input.merchantId)
    throw new Refusal('transaction_not_found', { param: input.param ?? 'transaction_id' });
  return viewOf(row);
}

/** Wakes the callers that wait for a change of status; fed by the database's notifications. */
export type StatusNotifier = {
  /** Resolves at the next change of this transaction, or when `signal` aborts. */
  next(transactionId: string, signal: AbortSignal): Promise<void>;
};

/**
 * Waits until the status differs from `statusWas` (null: from the status at arrival), or the signal aborts (the time is up, or the client
 * has gone), and returns the transaction as it is then.
 */
export async function waitForStatus(
  ctx: Context,
  notifier: StatusNotifier,
  input: {
    readonly merchantId: bigint;
    readonly transactionId: string;
    readonly statusWas: string | null;
    readonly signal: AbortSignal;
  },
): Promise<TransactionView> {
  let was = input.statusWas;
  for (;;) {
    // subscribe before reading, so that no change between the two is missed
    const changed = notifier.next(input.transactionId, input.signal);
    const view = await checkTransaction(ctx, input);
    was ??= view.status;
    if (view.status !== was || input.signal.aborted) return view;
    await changed;
  }
}

export type TransactionList = {
  readonly data: readonly (TransactionView & Pick<ListedTransaction, 'label' | 'address' | 'rate' | 'expiresAtMs'>)[];
  readonly hasMore: boolean;
};

/** The merchant's transactions, newest first. */
export async function listTransactions(ctx: Context, filter: ListFilter): Promise<TransactionList> {
  const rows = await listTransactionRows(ctx.db, filter);
  const data = rows
    .slice(0, filter.limit)
    .map((row) => ({ ...viewOf(row), label: row.label, address: row.address, rate: row.rate, expiresAtMs: row.expiresAtMs }));
  return { data, hasMore: rows.length > filter.limit };
}

/** What `expand` shows, its lists where `names` has them. @throws Refusal transaction_not_found */
export async function expandTransaction(
  ctx: Context,
  input: { readonly merchantId: bigint; readonly transactionId: string; readonly names: readonly string[] },
): Promise<Expansion> {
  const expansion = await readExpansion(ctx.db, input.transactionId, new Set(input.names));
  if (expansion === null || expansion.merchantId !== input.merchantId)
    throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  return expansion;
}

/** The payments of a transaction, the newest hundred of them, and where all of them lie. The caller has asked whose it is. */
export async function readWhatCame(
  { db }: Context,
  transactionId: string,
): Promise<{ readonly payments: readonly PaymentSeen[]; readonly lies: readonly LiesWhere[] }> {
  const [payments, lies] = await Promise.all([readPaymentsSeen(db, transactionId), readLiesWhere(db, transactionId)]);
  return { payments, lies };
}

/** The entries of the merchant's available balance, newest first. @throws Refusal not_found for a `startingAfter` that is none of them */
export async function listBalanceEntries(
  ctx: Context,
  input: {
    readonly merchantId: bigint;
    readonly currency: CurrencyCode | null;
    readonly limit: number;
    readonly startingAfter: bigint | null;
  },
): Promise<{ readonly data: readonly BalanceEntryRow[]; readonly hasMore: boolean }> {
  const { merchantId, startingAfter } = input;
  if (startingAfter !== null && !(await isBalanceEntry(ctx.db, merchantId, startingAfter)))
    throw new Refusal('not_found', { message: 'There is no such balance entry.', param: 'starting_after' });
  const rows = await balanceEntries(ctx.db, merchantId, {
    currency: input.currency,
    limit: input.limit,
    beforeEntryId: startingAfter,
  });
  return { data: rows.slice(0, input.limit), hasMore: rows.length > input.limit };
}
