// A part that has left for somebody who goes away before he says that he has it: no channel lists an HTLC of it, and he gets it once he is back.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, open } from './funded-lnd.ts';

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 120_000);
  afterEach(close);
  type Listed = { readonly channels: readonly { readonly active: boolean; readonly pending_htlcs: readonly unknown[] }[] };

  test("it is no operator's to decide while he may get it", { timeout: 300_000 }, async () => {
    const { shop, customer } = engine.pair;
    const channels = async () => (await shop.call<Listed>('GET', '/v1/channels')).channels;
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, '0.00001');
    customer.freeze();
    await eventually('the node has it', async () => {
      await at.look();
      return (await at.payment(id)).payment_index !== null;
    });
    await customer.kill();
    await eventually('the other side is away', async () => (await channels()).every(({ active }) => !active));
    expect((await channels()).flatMap((one) => one.pending_htlcs)).toEqual([]);
    expect(await at.ctx.ports.lightning?.holds(to.hash)).toBe(false);
    // its invoice has expired long ago
    clock.skewMs = 2 * 3_600_000;
    await at.look();
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    await customer.start();
    await engine.held(to.hash, 60_000);
    expect(await at.ctx.ports.lightning?.holds(to.hash)).toBe(true);
    await engine.decide(to.hash, true);
    await eventually('it is paid', async () => {
      clock.skewMs += 5_000;
      await at.look();
      return (await at.payout(id)).status === 'completed';
    });
    expect(await engine.arrived(to.hash)).toBe(1_000);
  });
});
