// The job that looks at payouts that wait: it lets those go on whose reason has ended, oldest first, and stops queued ones whose merchant owes
// something now. Any number of workers may run it: the row lock of each payout decides who is first.
import type { Context } from '../flow/context.ts';
import { reconsiderPayout } from '../flow/payout-holds.ts';
import { payoutsToReconsider } from '../store/payouts/hold-facts.ts';
import { HELD_JOB } from '../store/payouts/payouts.ts';
import type { Job } from './loop.ts';

/** What a verdict, a cancel or a cleared breaker lets go on wakes it at once; blocks that make credits final, and clocks, are found by this. */
const LOOK_MS = 15_000;
const AT_ONCE = 200;

/** @param onTrouble called for a payout that cannot be looked at; the others go on */
export function createHeldPayouts(ctx: Context, onTrouble: (payoutId: string, error: unknown) => void): Job {
  return { name: HELD_JOB, everyMs: LOOK_MS, urgent: true, run: () => pass(ctx, onTrouble) };
}

async function pass(ctx: Context, onTrouble: (payoutId: string, error: unknown) => void): Promise<boolean> {
  const seen = new Set<string>();
  // a merchant's later payouts wait behind one that still waits for its credits
  const waiting = new Set<bigint>();
  for (;;) {
    const found = await payoutsToReconsider(ctx.db, { limit: AT_ONCE, but: [...waiting] });
    const fresh = found.filter(({ id, merchantId }) => !seen.has(id) && !waiting.has(merchantId));
    if (fresh.length === 0) return false;
    for (const { id, merchantId } of fresh) {
      seen.add(id);
      if (waiting.has(merchantId)) continue;
      try {
        if (!(await reconsiderPayout(ctx, id))) waiting.add(merchantId);
      } catch (error) {
        waiting.add(merchantId);
        onTrouble(id, error);
      }
    }
  }
}
