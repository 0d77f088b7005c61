// After a start of the database outputs and bank files are compared before a payout may be cancelled. A cancel waits for that here, before its
// database transaction: one that is open would keep a connection from others for as long.
import { setTimeout as delay } from 'node:timers/promises';
import { waitsForComparison } from '../../../store/payouts/comparisons.ts';
import { wakeDriver } from '../../../store/payouts/outgoing-facts.ts';
import type { Context } from '../../context.ts';

/** An ordinary start compares within a second or two. */
const WITHIN_MS = 8_000;
const AGAIN_MS = 100;

/** Ends when nothing of this payout waits for the comparison, at the latest after `withinMs`. It refuses nothing. */
export async function awaitComparison(
  ctx: Context,
  of: { readonly merchantId: bigint; readonly payoutId: string },
  withinMs = WITHIN_MS,
): Promise<void> {
  const began = performance.now();
  for (let wait = AGAIN_MS; await waitsForComparison(ctx.db, of); wait *= 2) {
    if (performance.now() - began + wait > withinMs) return;
    await wakeDriver(ctx.db);
    await delay(wait);
  }
}
