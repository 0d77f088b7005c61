// A simulated node, or database and node, that are put back to before a request to pay.
import { expect } from 'vitest';
import type { PayingNode } from '../../src/core/lightning/payer.ts';
import { checkPayoutStatus } from '../../src/flow/payouts/reads.ts';
import { copyDatabase } from '../support/postgres.ts';
import { AMOUNT, at, engine, invoice, outgoing, pass, reached, unheard } from './funded-payouts.ts';

/**
 * A payout whose recipient holds it, of which nobody here has heard, and which the node has forgotten.
 * @param meanwhile what happens before the node is reached again
 */
export async function forgotten(meanwhile = (): void => undefined): Promise<{ readonly id: string; readonly hash: string }> {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const putBack = engine.backup();
  await at.look(unheard());
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  await putBack();
  meanwhile();
  await reached();
  return { id, hash: to.hash };
}

/**
 * Database and node are put back to before something was sent.
 * @param how.putBack puts the node back (default: to now); `meanwhile`: what happens before it is reached again; `over`: what the signer does otherwise then
 * @returns what works on the copy then
 */
export async function bothPutBack(
  send: () => Promise<void>,
  how: {
    readonly putBack?: () => Promise<void>;
    readonly meanwhile?: () => void;
    readonly over?: Parameters<typeof at.look>[0];
  } = {},
) {
  const copy = await copyDatabase(at.url);
  const { putBack = engine.backup(), meanwhile } = how;
  await send();
  await putBack();
  meanwhile?.();
  await reached();
  const restored = await at.onCopy(copy, how.over);
  // as after a start: it was compared once, and not since
  await copy.db.query({ text: `update comparisons set timeline = 'another'` });
  return {
    db: copy.db,
    ctx: restored.ctx,
    seen: (payoutId: string) => checkPayoutStatus(restored.ctx, { merchantId: at.merchantId, payoutId }),
    async looks(times: number, ms = 21_000): Promise<void> {
      for (let n = 0; n < times; n++) {
        pass(ms);
        await restored.look();
      }
    },
    async end(): Promise<void> {
      await restored.close();
      await copy.drop();
    },
  };
}

/** What a node says, with another word on for how long it has counted its channels. */
export const counted = (said: PayingNode, since: (ms: number) => number): PayingNode => ({
  ...said,
  channels: said.channels.map((one) => ({ ...one, countedMs: since(one.countedMs) })),
});
