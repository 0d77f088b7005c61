// Automatic payouts run in the API's process, because only it can sign a request: a worker tells it when some may be due.

import type { Context } from '../../flow/context.ts';
import { requestAutomaticPayouts } from '../../flow/payouts/automatic-payouts.ts';
import { AUTOMATIC_CHANNEL } from '../../store/payouts/settings.ts';

/**
 * Requests automatic payouts whenever a worker says so; one run at a time.
 * @param onTrouble called with what could not be requested
 * @returns ends it: resolves when the present run is over
 */
export async function runAutomaticPayouts(
  ctx: Context,
  onTrouble: (what: object, message: string) => void,
): Promise<() => Promise<void>> {
  let running: Promise<unknown> = Promise.resolve();
  let isWanted = false;
  async function run(): Promise<void> {
    isWanted = false;
    try {
      await requestAutomaticPayouts(ctx, (merchantId, err) =>
        onTrouble({ err, merchantId: String(merchantId) }, 'an automatic payout'),
      );
    } catch (err) {
      onTrouble({ err }, 'automatic payouts');
    }
  }
  function wake(): void {
    if (isWanted) return;
    isWanted = true;
    running = running.then(run);
  }
  const stop = await ctx.db.listen([AUTOMATIC_CHANNEL], wake, wake);
  return async () => {
    await stop();
    await running;
  };
}
