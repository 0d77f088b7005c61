// Waits until all that is due has been done once: the clock control, and every other control of the sandbox that wants its effect to be seen,
// answer after this. It only hurries the workers and watches the database; who does the work does not matter.
import type { Context } from '../flow/context.ts';
import { hurry, isSettled } from '../store/due.ts';

const LOOK_EVERY_MS = 15;
const HURRY_EVERY_MS = 500;

/**
 * @param timeoutMs real time after which it gives up (a node may be down, a worker not running)
 * @returns whether everything was done
 */
export async function settle(ctx: Pick<Context, 'db' | 'ports'>, timeoutMs: number): Promise<boolean> {
  const sinceMs = ctx.ports.clock.now();
  const deadline = performance.now() + timeoutMs;
  for (let hurried = Number.NEGATIVE_INFINITY; performance.now() < deadline; ) {
    if (performance.now() - hurried >= HURRY_EVERY_MS) {
      await hurry(ctx.db);
      hurried = performance.now();
    }
    if (await isSettled(ctx.db, sinceMs)) return true;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return false;
}
