// What every operation gets first: the database and the ports to the outside. Made once per process. `within` makes the same context for
// work that must share an open transaction (idempotency keys).
import { LIGHTNING } from '../core/currencies/lightning.ts';
import type { CurrencyCode, Network, PaymentMethod } from '../core/currency.ts';
import type { Ports } from '../core/ports.ts';
import type { BatchOfKey } from '../store/postgres/batch.ts';
import type { Database, Sql } from '../store/postgres/connect.ts';
import { type TransactionBatches, transactionBatchesWithin } from './transactions/request-batches.ts';

export type Context = {
  readonly db: Database;
  readonly ports: Ports;
  readonly network: Network;
  /** The currencies that have a node in this configuration. */
  readonly currencies: readonly CurrencyCode[];
  /** The contract of USDT on this network, with its checksum (EIP-55); null where none is known. */
  readonly tokenContract: string | null;
  /** The service's own fee in basis points (BURSAR_FEE_BPS). */
  readonly feeBps: number;
  /** Seconds from succeeded to settled (BURSAR_SETTLEMENT_SECONDS). */
  readonly settlementSeconds: number;
  /** Cents: a payment worth more is booked only where two of its chain's nodes, if there are several, hold its block (BURSAR_CONTESTED_LIMIT_USD). */
  readonly contestedLimitMinor: bigint;
  /** Cents that a merchant may pay out before its credits are final (BURSAR_UNFINAL_PAYOUT_USD); null = no limit. */
  readonly unfinalPayoutMinor: bigint | null;
  /** Cents that the service may have of a currency by converting, before payouts stop (BURSAR_EXPOSURE_USD); null = no limit. */
  readonly exposureMinor: bigint | null;
  /**
   * Payments in ether and tokens that are worth this many times their gas move to the address that payouts leave from (BURSAR_SWEEP_GAS_MULTIPLE);
   * 0 or absent: none does.
   */
  readonly sweepGasMultiple?: number;
  /** Whether a bank is configured that pays bank accounts. */
  readonly hasBank: boolean;
  /** Micro-batched reads and writes of the hot paths, and the next address of each currency. */
  readonly batches: TransactionBatches;
  /** What a merchant's calls that arrive together share a database transaction by; absent: each has its own. */
  readonly batchOfKey?: BatchOfKey;
  /**
   * Inside an open transaction: takes work that must wait until the transaction has ended. Absent outside one: each write is committed when
   * it returns.
   */
  readonly afterwards?: Afterwards;
};
export type Afterwards = (work: () => void) => void;

/** What is watched for payments in this configuration: the chains, and a Lightning node. */
export function watchedCodes({ currencies, ports }: Context): readonly PaymentMethod[] {
  return ports.lightning === null ? currencies : [...currencies, LIGHTNING.code];
}

/**
 * The context whose database is one open transaction: `db.query` runs in it, `db.transaction` becomes a savepoint of it, so that an
 * operation that refuses leaves nothing behind and the caller can still commit its own rows.
 * @param afterwards collects the work that must wait for the end of that transaction
 */
export function within(ctx: Context, sql: Sql, afterwards: Afterwards): Context {
  const db: Database = {
    query: (statement) => sql.query(statement),
    async transaction(work) {
      await sql.query({ text: 'savepoint verb' });
      try {
        const result = await work(sql);
        await sql.query({ text: 'release savepoint verb' });
        return result;
      } catch (error) {
        await sql.query({ text: 'rollback to savepoint verb' });
        throw error;
      }
    },
    listen: (channels, onMessage, onLost) => ctx.db.listen(channels, onMessage, onLost),
    sessionLock: (name, onLost) => ctx.db.sessionLock(name, onLost),
    identity: ctx.db.identity,
    close: () => Promise.reject(new Error('an open transaction is closed by the code that opened it')),
  };
  const { batchOfKey: _, ...rest } = ctx;
  return { ...rest, db, batches: transactionBatchesWithin(ctx.batches, db), afterwards };
}
