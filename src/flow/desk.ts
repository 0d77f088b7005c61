// The desk where payments are made and asked for: what many requests do at once is one statement here, and addresses lie ready. Made in
// main/wire.ts; inside an open transaction the same desk works without batches.
import type { UtxoCode } from '../core/currency.ts';
import type { DerivedAddress } from '../core/ports.ts';
import { createBatch } from '../store/batch.ts';
import type { Sql } from '../store/connect.ts';
import { type DayFacts, readDayFacts } from '../store/desk.ts';
import { type CheckRow, insertTransactions, type NewTransaction, readChecks } from '../store/transactions.ts';

export type Desk = {
  /** Writes a transaction with its first event; false when the merchant has no settings row. */
  insert(row: NewTransaction): Promise<boolean>;
  check(id: string): Promise<CheckRow | null>;
  dayFacts(): Promise<DayFacts>;
  /** An address that was never given out before; null where no account key of the currency is known. */
  nextAddress(currency: UtxoCode): Promise<DerivedAddress | null>;
};

export function createDesk(sql: Sql, nextAddress: Desk['nextAddress']): Desk {
  return {
    insert: createBatch(1, (rows: readonly NewTransaction[]) => insertTransactions(sql, rows)),
    check: createBatch(2, (ids: readonly string[]) => readChecks(sql, ids)),
    dayFacts: createBatch(1, async (asked: readonly undefined[]) => {
      const facts = await readDayFacts(sql);
      return asked.map(() => facts);
    }) as () => Promise<DayFacts>,
    nextAddress,
  };
}

/** The same desk on one open transaction. */
export function deskWithin(desk: Desk, sql: Sql): Desk {
  return {
    insert: async (row) => (await insertTransactions(sql, [row]))[0] ?? false,
    check: async (id) => (await readChecks(sql, [id]))[0] ?? null,
    dayFacts: () => readDayFacts(sql),
    nextAddress: desk.nextAddress,
  };
}
