// Payouts over Lightning on a real LND of their own, paid by a merchant who has been paid 500 USD, with a clock that the test moves.
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { lndEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts, paidIn, withClock } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

export const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
export let engine: Awaited<ReturnType<typeof lndEngine>>;
export let at: LightningPayouts;

export async function open(): Promise<void> {
  clock.skewMs = 0;
  engine = await lndEngine();
  at = await openLightningPayouts(
    createLnd(async () => engine.target(), { chain: 'regtest' }),
    withClock(
      createLndPayer(async () => engine.payTarget()),
      clock,
    ),
    clock,
  );
  await at.work();
  await at.look();
  await paidIn(at, engine, 500_00n);
}
export async function close(): Promise<void> {
  await at?.close();
  await engine?.close();
}

/** Once the node has a payout's payment. */
export async function isTaken(id: string): Promise<void> {
  await eventually('the node has it', async () => {
    await at.look();
    return (await at.payment(id)).payment_index !== null;
  });
}

/** Once a payout is completed, by a clock that goes on. */
export async function isPaid(id: string): Promise<void> {
  await eventually(
    'it is paid',
    async () => {
      clock.skewMs += 5_000;
      await at.look();
      return (await at.payout(id)).status === 'completed';
    },
    60_000,
  );
}
