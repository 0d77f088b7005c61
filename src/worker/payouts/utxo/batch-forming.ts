// Forms batches of a chain of Bitcoin's family. A payout with which none can be formed (a fault of ours) is found by trying them one by one, and
// left out for a while: the others do not wait for it.
import type { UtxoCode } from '../../../core/currency.ts';
import type { Context } from '../../../flow/context.ts';
import { type Formed, formBatch } from '../../../flow/payouts/batches.ts';
import { queuedIds } from '../../../store/payouts/reads.ts';
import type { DriverOptions } from '../driver-options.ts';

/** Payouts that are tried one by one in a pass. */
const MOST_TRIED = 20;
const LEFT_OUT_MS = 60_000;

/**
 * Forms a batch of what is queued.
 * @returns what came of it; null when nothing could be formed because of a fault, which was told
 */
export function createBatchForming(
  ctx: Context,
  currency: UtxoCode,
  onFault: DriverOptions['onFault'],
): (rate: bigint, most: number) => Promise<Formed | null> {
  /** Payouts that fail, and until when they are left out. */
  const leftOut = new Map<string, number>();

  async function oneByOne(rate: bigint, fault: unknown): Promise<Formed | null> {
    let hasFailed = false;
    for (const id of await queuedIds(ctx.db, currency, { limit: MOST_TRIED, without: [...leftOut.keys()] })) {
      try {
        const formed = await formBatch(ctx, currency, rate, 1, { only: id });
        if (formed.outcome === 'formed') return formed;
      } catch (error) {
        hasFailed = true;
        leftOut.set(id, ctx.ports.clock.now() + LEFT_OUT_MS);
        onFault(`payout ${id}`, error);
      }
    }
    if (!hasFailed) onFault(`batches in ${currency}`, fault);
    return null;
  }

  return async (rate, most) => {
    const nowMs = ctx.ports.clock.now();
    for (const [id, untilMs] of leftOut) if (untilMs <= nowMs || untilMs > nowMs + LEFT_OUT_MS) leftOut.delete(id);
    try {
      return await formBatch(ctx, currency, rate, most, { without: [...leftOut.keys()] });
    } catch (error) {
      return oneByOne(rate, error);
    }
  };
}
