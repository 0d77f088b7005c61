// The job that drives payouts: books capital that has become final, then each chain's batches. It is woken by requests and by blocks; while
// something waits it looks every second.
import type { UtxoCode } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { bookCapital } from '../flow/payout-batches.ts';
import { readWork } from '../store/payouts/batches.ts';
import { PAYOUT_JOB } from '../store/payouts/outgoing-facts.ts';
import type { Job } from './loop.ts';
import { createPayoutDriver, type Signing } from './payout-driver.ts';

const WAITING_MS = 1_000;
/** A wake-up may have been missed; and what waits for its time (a retry, a resend) is found by this. */
const QUIET_MS = 5_000;

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
  return {
    name: PAYOUT_JOB,
    everyMs: () => (isWaiting ? WAITING_MS : QUIET_MS),
    urgent: true,
    async run() {
      isWaiting = false;
      for (const driver of drivers.values()) await driver.askFee();
      for (const { currency, queued, unbooked } of await readWork(ctx.db, ctx.ports.clock.now())) {
        const driver = drivers.get(currency);
        if (driver === undefined) continue;
        if (unbooked) await bookCapital(ctx, currency);
        await driver.pass(queued);
        isWaiting ||= queued;
      }
      return false;
    },
  };
}
