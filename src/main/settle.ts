// Waits until the service has done what is due: the controls of the sandbox that want their effect to be seen answer after this. It only
// hurries the workers and watches the database; who does the work does not matter.
import type { UtxoCode } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { hurry, isJudged, isRead, isSettled } from '../store/due.ts';

const LOOK_EVERY_MS = 15;
const HURRY_EVERY_MS = 500;
/** What the judge cannot decide, or others keep it busy with, keeps nobody waiting for longer than this. */
const JUDGE_WITHIN_MS = 2_000;

type Waiting = Pick<Context, 'db' | 'ports'>;

/**
 * Waits until everything that is due now has been done once: chains read, transactions judged, rule 8's look-ups, deep scans.
 * @param timeoutMs real time after which it gives up (a node may be slow, a worker not running)
 * @returns whether everything was done
 */
export function settle(ctx: Waiting, timeoutMs: number): Promise<boolean> {
  const sinceMs = ctx.ports.clock.now();
  return until(ctx, () => isSettled(ctx.db, sinceMs), timeoutMs);
}

/**
 * Waits until these chains were read after this moment, as far as they can be, and for a moment until what came of it was judged.
 * @param timeoutMs real time after which it gives up
 * @returns whether they were read
 */
export async function untilRead(ctx: Waiting, currencies: readonly UtxoCode[], timeoutMs: number): Promise<boolean> {
  // a pass of this very millisecond may have begun before what is waited for
  const sinceMs = ctx.ports.clock.now() + 1;
  if (!(await until(ctx, () => isRead(ctx.db, currencies, sinceMs), timeoutMs))) return false;
  await until(ctx, () => isJudged(ctx.db), JUDGE_WITHIN_MS);
  return true;
}

/** @throws what the database said last when it could not be asked until the time was up */
async function until(ctx: Waiting, isSo: () => Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let hurried = Number.NEGATIVE_INFINITY; ; ) {
    try {
      if (performance.now() - hurried >= HURRY_EVERY_MS) {
        await hurry(ctx.db);
        hurried = performance.now();
      }
      if (await isSo()) return true;
      if (performance.now() >= deadline) return false;
    } catch (error) {
      if (performance.now() >= deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
