// The job that looks at payouts that wait: it lets those go on whose reason has ended, oldest first and each by itself, and stops queued ones
// while payouts are stopped or whose merchant owes something now. Any number of workers may run it: the row lock of each payout decides who is first.
import type { Context } from '../../flow/context.ts';
import { reconsiderPayout } from '../../flow/payouts/held-reasons.ts';
import { HELD_JOB } from '../../store/payouts/payouts.ts';
import { payoutsToReconsider, type ToReconsider } from '../../store/payouts/request-facts.ts';
import type { Job } from '../loop.ts';

/** What a verdict, a cancel or a cleared breaker lets go on wakes it at once; blocks that make credits final, and clocks, are found by this. */
const LOOK_MS = 15_000;
/** The same while no payout waits. */
const REST_MS = 60_000;
const SPREAD = 0.1;
const AT_ONCE = 200;

/** @param onTrouble called for a payout that cannot be looked at; the others go on */
export function createHeldPayouts(ctx: Context, onTrouble: (payoutId: string, error: unknown) => void): Job {
  let waits = true;
  return {
    name: HELD_JOB,
    everyMs: (chance) => (waits ? LOOK_MS : REST_MS) * (1 - SPREAD * chance),
    urgent: true,
    async run() {
      waits = (await pass(ctx, onTrouble)) > 0;
      return false;
    },
  };
}

/** @returns how many payouts wait */
async function pass(ctx: Context, onTrouble: (payoutId: string, error: unknown) => void): Promise<number> {
  // of a merchant's balance: the least that still waits for its credits; what takes as much of it waits too
  const tooMuch = new Map<string, bigint>();
  // merchants of whom no more may be under way over Lightning
  const crowded = new Set<string>();
  let waiting = 0;
  for (let after: ToReconsider | null = null; ; ) {
    const found: readonly ToReconsider[] = await payoutsToReconsider(ctx.db, {
      limit: AT_ONCE,
      after,
      nowMs: ctx.ports.clock.now(),
    });
    waiting += found.length;
    for (const payout of found) {
      const balance = `${payout.merchantId} ${payout.currency}`;
      const least = tooMuch.get(balance);
      if (payout.isNotFinal && least !== undefined && payout.holds >= least) continue;
      const kind = `${payout.merchantId} ${payout.isReimbursement}`;
      if (payout.isCrowded && crowded.has(kind)) continue;
      try {
        const isMoved = await reconsiderPayout(ctx, payout.id);
        if (!isMoved && payout.isNotFinal) tooMuch.set(balance, payout.holds);
        if (!isMoved && payout.isCrowded) crowded.add(kind);
      } catch (error) {
        onTrouble(payout.id, error);
      }
    }
    after = found.at(-1) ?? null;
    if (found.length < AT_ONCE) return waiting;
  }
}
