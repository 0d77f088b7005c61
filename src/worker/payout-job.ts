// The job that drives payouts: books capital that has become final, then each chain's batches. It is woken by requests and by blocks; while
// something waits it looks every second.
import type { UtxoCode } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { bookCapital } from '../flow/own-coins.ts';
import { restoreSignature } from '../flow/restored-signatures.ts';
import { lastSignature } from '../store/payouts/attempts.ts';
import { readWork } from '../store/payouts/batches.ts';
import { PAYOUT_JOB } from '../store/payouts/outgoing-facts.ts';
import type { Job } from './loop.ts';
import { createPayoutDriver, type Signing } from './payout-driver.ts';

const WAITING_MS = 1_000;
/** A wake-up may have been missed; and what waits for its time (a retry, a resend) is found by this. */
const QUIET_MS = 15_000;

export type PayoutJobOptions = {
  readonly signing: Signing;
  /** Names this process in the leases of batches. */
  readonly owner: string;
  readonly onTrouble: (what: string) => void;
};

/** @param currencies those whose chain pays payouts */
export function payoutJob(ctx: Context, currencies: readonly UtxoCode[], options: PayoutJobOptions): Job {
  const drivers = new Map(currencies.map((currency) => [currency, createPayoutDriver(ctx, currency, options)]));
  let isWaiting = false;
  /** The database whose signatures are complete; null = not compared yet. */
  let complete: number | null = null;

  /** Whether every signature of the signer is in this database: before that, nothing new is signed. */
  async function isComplete(): Promise<boolean> {
    const { generation } = ctx.db.identity;
    if (complete === generation) return true;
    try {
      for (let more = true; more; ) {
        const page = await options.signing.signed({ after: await lastSignature(ctx.db) });
        for (const signed of page.transactions) {
          const outcome = await restoreSignature(ctx, signed);
          if (outcome === 'unknown_payout') {
            options.onTrouble(
              `the signer has signed ${signed.txid} for a payout that this database does not know: payouts are stopped`,
            );
            return false;
          }
        }
        more = page.more && page.transactions.length > 0;
      }
    } catch (error) {
      if ((error as { fault?: string }).fault === undefined) throw error;
      options.onTrouble(`the signer cannot be asked what it has signed: ${(error as Error).message}`);
      return false;
    }
    complete = generation;
    return true;
  }
  return {
    name: PAYOUT_JOB,
    everyMs: () => (isWaiting ? WAITING_MS : QUIET_MS),
    urgent: true,
    async run() {
      await Promise.all([...drivers.values()].map((driver) => driver.askFee()));
      const work = await readWork(ctx.db, ctx.ports.clock.now());
      isWaiting = work.some(({ queued, soon }) => queued || soon);
      if (!(await isComplete())) return false;
      for (const { currency, queued, unbooked } of work) {
        const driver = drivers.get(currency);
        if (driver === undefined) continue;
        if (unbooked) await bookCapital(ctx, currency);
        await driver.pass(queued);
      }
      return false;
    },
  };
}
