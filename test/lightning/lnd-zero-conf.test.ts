// A part that has left by a channel which was used before it was in a block, for somebody who goes away before he says that he has it: once it is in one, a real
// LND calls it by one number in its list of channels and by another in routes.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';
import { openZeroConf } from '../support/zero-conf.ts';
import { at, clock, close, engine, isPaid, isTaken, open } from './funded-lnd.ts';

type Channel = {
  readonly active: boolean;
  readonly remote_pubkey: string;
  readonly chan_id: string;
  readonly zero_conf_confirmed_scid: string;
  readonly pending_htlcs: readonly unknown[];
};
type Routes = { readonly routes?: readonly { readonly hops: readonly { readonly chan_id: string }[] }[] };

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);

  test("it is no operator's to decide while he may get it", { timeout: 300_000 }, async () => {
    const { shop, mine, more } = engine.pair;
    const recipient = await more('recipient');
    await shop.call('POST', '/v1/peers', { addr: { pubkey: recipient.identity, host: recipient.peer }, perm: true });
    const channel = async (): Promise<Channel> => {
      const { channels } = await shop.call<{ channels: readonly Channel[] }>('GET', '/v1/channels');
      return channels.find((one) => one.remote_pubkey === recipient.identity) as Channel;
    };
    await openZeroConf(shop, recipient, { sat: 5_000_000, push: 1_000_000 });
    await eventually('it is used', async () => (await channel())?.active === true, 30_000);
    await mine(8);
    const inRoutes = async (): Promise<string | undefined> => {
      const { routes = [] } = await shop.call<Routes>('GET', `/v1/graph/routes/${recipient.identity}/1000`);
      return routes[0]?.hops[0]?.chan_id;
    };
    await eventually(
      'routes name it as the chain does',
      async () => {
        const { zero_conf_confirmed_scid: confirmed } = await channel();
        return confirmed !== '0' && (await inRoutes().catch(() => null)) === confirmed;
      },
      30_000,
    );
    expect((await channel()).chan_id).not.toBe(await inRoutes());
    const to = await recipient.call<{ payment_request: string }>('POST', '/v1/invoices', { value: '1000', expiry: '3600' });
    const { id } = await at.request(to.payment_request, '0.00001');
    recipient.freeze();
    await isTaken(id);
    await recipient.kill();
    await eventually('the other side is away', async () => !(await channel()).active);
    expect((await channel()).pending_htlcs).toEqual([]);
    // its invoice has expired long ago
    clock.skewMs = 2 * 3_600_000;
    await at.look();
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    await recipient.start();
    await isPaid(id);
  });
});
