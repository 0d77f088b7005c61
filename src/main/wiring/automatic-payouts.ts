// Automatic payouts run in the API's process, because only it can sign a request: a worker tells it when some may be due.

import type { Context } from '../../flow/context.ts';
import { requestAutomaticPayouts } from '../../flow/payouts/automatic-payouts.ts';
import { AUTOMATIC_CHANNEL } from '../../store/payouts/settings.ts';

/**
 * Requests automatic payouts whenever a worker says so; one run of each kind at a time.
 * @param onTrouble called with what could not be requested
 * @returns ends it: resolves when the present run is over
 */
export async function runAutomaticPayouts(
  ctx: Context,
  onTrouble: (what: object, message: string) => void,
): Promise<() => Promise<void>> {
  /** Runs those of one kind, one run after the other. */
  function runsOf(overLightning: boolean) {
    const which = { overLightning, silent: new Map<bigint, number>() };
    let running: Promise<unknown> = Promise.resolve();
    let isWanted = false;
    async function run(): Promise<void> {
      isWanted = false;
      try {
        await requestAutomaticPayouts(ctx, which, (merchantId, err) =>
          onTrouble({ err, merchantId: String(merchantId) }, 'an automatic payout'),
        );
      } catch (err) {
        onTrouble({ err }, 'automatic payouts');
      }
    }
    return {
      wake(): void {
        if (isWanted) return;
        isWanted = true;
        running = running.then(run);
      },
      ended: () => running,
    };
  }
  // a destination over Lightning is asked first, and may be silent: nobody else waits for it
  const kinds = [runsOf(false), runsOf(true)];
  const wake = (): void => {
    for (const kind of kinds) kind.wake();
  };
  const stop = await ctx.db.listen([AUTOMATIC_CHANNEL], wake, wake);
  return async () => {
    await stop();
    await Promise.all(kinds.map((kind) => kind.ended()));
  };
}
