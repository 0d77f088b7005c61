// The hot paths of create and check: the work of many requests is one statement, addresses are kept ready, prices are remembered. Inside an
// open transaction the same is done without batches.
import type { CurrencyCode } from '../../core/currency.ts';
import type { DerivedAddress } from '../../core/ports.ts';
import type { RowSeals } from '../../core/row-seals.ts';
import { createBatch } from '../../store/postgres/batch.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { type QuoteFacts, readQuoteFacts } from '../../store/transactions/quote-facts.ts';
import { type CheckRow, insertTransactions, type NewTransaction, readChecks } from '../../store/transactions/transactions.ts';

export type TransactionBatches = {
  /** What prices are sealed with. */
  readonly seals: RowSeals;
  /**
   * Writes a transaction with its first event; false when the price is no longer the row's, its node cannot be used, or the merchant has no
   * settings: then nothing was written.
   */
  insert(row: NewTransaction): Promise<boolean>;
  check(id: string): Promise<CheckRow | null>;
  /** Prices and nodes as they are now. */
  quoteFacts(): Promise<QuoteFacts>;
  /** The last result of `quoteFacts`; null: none yet. `insert` refuses what is no longer true. */
  rememberedFacts(): QuoteFacts | null;
  /** An address that was never given out before; null where no account key of the currency is known. */
  nextAddress(currency: CurrencyCode): Promise<DerivedAddress | null>;
};

/** Collects what concurrent calls of one API process need, so that they share a statement: inserts, checks, and the facts of a quote. */
export function createTransactionBatches(
  sql: Sql,
  seals: RowSeals,
  nextAddress: TransactionBatches['nextAddress'],
): TransactionBatches {
  let remembered: QuoteFacts | null = null;
  return {
    seals,
    insert: createBatch(1, (rows: readonly NewTransaction[]) => insertTransactions(sql, rows)),
    check: createBatch(2, (ids: readonly string[]) => readChecks(sql, ids)),
    quoteFacts: createBatch(1, async (asked: readonly undefined[]) => {
      const facts = await readQuoteFacts(sql, seals);
      remembered = facts;
      return asked.map(() => facts);
    }) as () => Promise<QuoteFacts>,
    rememberedFacts: () => remembered,
    nextAddress,
  };
}

/** The same on one open transaction. */
export function transactionBatchesWithin(batched: TransactionBatches, sql: Sql): TransactionBatches {
  return {
    seals: batched.seals,
    insert: async (row) => (await insertTransactions(sql, [row]))[0] ?? false,
    check: async (id) => (await readChecks(sql, [id]))[0] ?? null,
    quoteFacts: () => readQuoteFacts(sql, batched.seals),
    rememberedFacts: batched.rememberedFacts,
    nextAddress: batched.nextAddress,
  };
}
