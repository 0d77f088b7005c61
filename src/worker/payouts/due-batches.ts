// Takes each batch of a currency that is due a step further, under a lease. One that fails is told and left: its lease ends by itself, so that it
// is tried again later, and the others go on.
import type { CurrencyCode } from '../../core/currency.ts';
import { LEASE_MS } from '../../core/payouts/states.ts';
import type { Context } from '../../flow/context.ts';
import { leaseBatch, setBatchTrouble } from '../../store/payouts/batch-rows.ts';
import type { DriverOptions } from './driver-options.ts';

export type DueBatches = Pick<DriverOptions, 'owner' | 'onFault'> & {
  readonly currency: CurrencyCode;
  /** Takes one that is leased a step further, and ends its lease. */
  drive(batchId: string): Promise<void>;
};

/**
 * Takes the next one that is due.
 * @param seen ids of those that this pass has had: the one that is taken is added
 * @returns false when none is due
 * @throws when the database does not answer
 */
export async function driveNext(ctx: Context, { owner, onFault, currency, drive }: DueBatches, seen: string[]): Promise<boolean> {
  const nowMs = ctx.ports.clock.now();
  const id = await leaseBatch(ctx.db, { owner, currency, nowMs, untilMs: nowMs + LEASE_MS, not: seen });
  if (id === null) return false;
  seen.push(id);
  try {
    await drive(id);
  } catch (error) {
    onFault(`batch ${id}`, error);
    await setBatchTrouble(ctx.db, id, (error as Error).message);
  }
  return true;
}
