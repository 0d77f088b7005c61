// A part that has left for somebody who does not say that he has it: no channel lists an HTLC of it, and he gets it again with each connection.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { type HeldBack, holdingBack, THERE } from '../support/held-back.ts';
import { HAS_LND } from '../support/lightning-engines.ts';
import { openChannel } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, isPaid, isTaken, open } from './funded-lnd.ts';

describe.runIf(HAS_LND)('on LND', () => {
  let way: HeldBack | null = null;
  beforeEach(open, 300_000);
  afterEach(async () => {
    await way?.close();
    way = null;
    await close();
  });
  type Channel = { readonly active: boolean; readonly remote_pubkey: string; readonly pending_htlcs: readonly unknown[] };
  const channels = async () =>
    (await engine.pair.shop.call<{ readonly channels: readonly Channel[] }>('GET', '/v1/channels')).channels;

  test("it is no operator's to decide while he is away and may get it", { timeout: 300_000 }, async () => {
    const { customer } = engine.pair;
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, '0.00001');
    customer.freeze();
    await isTaken(id);
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
    await isPaid(id);
    expect(await engine.arrived(to.hash)).toBe(1_000);
  });

  test('nor while he is there, and does not say that he has it', { timeout: 300_000 }, async () => {
    const { shop, mine, more } = engine.pair;
    const recipient = await more('recipient');
    way = await holdingBack(recipient.peer);
    const channel = async (): Promise<Channel | undefined> =>
      (await channels()).find((one) => one.remote_pubkey === recipient.identity);
    await shop.call('POST', '/v1/peers', { addr: { pubkey: recipient.identity, host: way.peer }, perm: true });
    await openChannel(shop, recipient, { local_funding_amount: '5000000', push_sat: '1000000', sat_per_vbyte: '5' });
    await mine(6);
    await eventually('it is used', async () => (await channel())?.active === true, 30_000);
    const routes = (): Promise<boolean> =>
      shop.call<{ routes?: readonly unknown[] }>('GET', `/v1/graph/routes/${recipient.identity}/1000`).then(
        (said) => (said.routes ?? []).length > 0,
        () => false,
      );
    await eventually('there is a route', routes, 30_000);
    const to = await recipient.call<{ payment_request: string; r_hash: string }>('POST', '/v1/invoices', { value: '1000' });
    const thaw = recipient.freeze();
    const { id } = await at.request(to.payment_request, '0.00001');
    await isTaken(id);
    way.pass(THERE);
    thaw();
    await eventually('the other side is away', async () => (await channel())?.active === false);
    await eventually('it is there', async () => (await channel())?.active === true, 60_000);
    // more than a day after the node was asked
    clock.skewMs = 25 * 3_600_000;
    await at.look();
    expect(await channel()).toMatchObject({ active: true, pending_htlcs: [] });
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    expect((await at.payment(id)).trouble).toMatch(/what has left may still arrive, up to block \d+$/);
    const failed = resolvePayout(
      at.ctx,
      { payoutId: id, outcome: 'failed', evidence: 'its recipient has nothing' },
      at.paying.track,
    );
    await expect(failed).rejects.toMatchObject({ code: 'not_resolvable' });
    way.pass(Number.POSITIVE_INFINITY);
    await eventually(
      'its recipient has it',
      async () => {
        const hash = Buffer.from(to.r_hash, 'base64').toString('hex');
        return (await recipient.call<{ state: string }>('GET', `/v1/invoice/${hash}`)).state === 'SETTLED';
      },
      60_000,
    );
    clock.skewMs += 61_000;
    await isPaid(id);
  });
});
