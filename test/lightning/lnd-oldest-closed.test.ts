// A real LND whose oldest channels are closed by agreement while a payout is under way by a younger one: it has not been started since, and its word that the
// payment failed counts.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { openChannel } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';
import { at, close, engine, open } from './funded-lnd.ts';

type Listed = {
  readonly channels: readonly {
    readonly channel_point: string;
    readonly chan_id: string;
    readonly active: boolean;
    readonly lifetime: string;
    readonly pending_htlcs: readonly unknown[];
  }[];
};

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);

  test('what a younger channel holds is failed by its word once the older ones are closed', { timeout: 300_000 }, async () => {
    const { shop, customer, mine } = engine.pair;
    const channels = async () => (await shop.call<Listed>('GET', '/v1/channels')).channels;
    const older = (await channels()).map((one) => one.channel_point);
    await eventually(
      'they are much older',
      async () => (await channels()).every(({ lifetime }) => Number(lifetime) > 15),
      60_000,
    );
    await openChannel(shop, customer, { local_funding_amount: '16000000', sat_per_vbyte: '5' });
    await mine(6);
    const younger = async () => (await channels()).find((one) => !older.includes(one.channel_point));
    type Routes = { readonly routes: readonly { readonly hops: readonly { readonly chan_id: string }[] }[] };
    await eventually(
      'it pays by another',
      async () => {
        const { routes } = await shop.call<Routes>('GET', `/v1/graph/routes/${customer.identity}/1000`);
        return routes[0]?.hops[0]?.chan_id === (await younger())?.chan_id;
      },
      60_000,
    );
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, '0.00001');
    // a clock that was set would look as if the node had been started
    await eventually('it is on its way', async () => {
      await at.look();
      return (await at.payment(id)).payment_index !== null;
    });
    await engine.held(to.hash);
    expect((await younger())?.pending_htlcs).toHaveLength(1);
    for (const point of older) shop.call('DELETE', `/v1/channels/${point.replace(':', '/')}`).catch(() => undefined);
    await eventually(
      'they are closed',
      async () => {
        await mine(1);
        const { channels: closed } = await shop.call<{ channels: readonly unknown[] }>('GET', '/v1/channels/closed');
        return closed.length === older.length;
      },
      60_000,
    );
    await engine.decide(to.hash, false);
    await eventually('it is given back', async () => ((await younger())?.pending_htlcs ?? []).length === 0);
    const seen = await eventually(
      'it has ended, or an operator is asked',
      async () => {
        await at.look();
        const { status, heldReason } = await at.payout(id);
        return status === 'processing' && heldReason === null ? null : { status, heldReason };
      },
      60_000,
    );
    expect(seen).toEqual({ status: 'failed', heldReason: null });
  });
});
