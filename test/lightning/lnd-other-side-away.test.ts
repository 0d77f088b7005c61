// A real LND that is put back to before a payment, while the node that holds the payment's HTLC is away: only once the two have met does a channel show
// that it is older.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { HAS_LND } from '../support/lightning-engines.ts';
import { unheardBy } from '../support/lightning-payouts.ts';
import { openChannel } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, open } from './funded-lnd.ts';

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);

  test('its word that it never had the payment ends nothing before the other side was met', { timeout: 300_000 }, async () => {
    const { shop, customer } = engine.pair;
    const putBack = await shop.backup();
    const routes = () => shop.call<{ routes?: readonly unknown[] }>('GET', `/v1/graph/routes/${customer.identity}/1000`);
    await eventually(
      'it finds a route',
      () =>
        routes().then(
          (said) => (said.routes ?? []).length > 0,
          () => false,
        ),
      60_000,
    );
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, '0.00001');
    await at.look(unheardBy(at));
    await engine.held(to.hash);
    await customer.kill();
    await putBack();
    for (let n = 0; n < 6; n++) {
      clock.skewMs += 8 * 60_000;
      await at.look();
    }
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    for (let n = 0; n < 6; n++) {
      clock.skewMs += 8 * 60_000;
      await at.look();
    }
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    await customer.start();
    await eventually('the other side has shown that it knows more', async () => {
      const pending = await shop.call<{ waiting_close_channels: readonly unknown[] }>('GET', '/v1/channels/pending');
      return pending.waiting_close_channels.length > 0;
    });
    await engine.decide(to.hash, true);
    await engine.pair.mine(3);
    expect(await engine.arrived(to.hash)).toBe(1_000);
    await at.look();
    expect((await at.payout(id)).status).toBe('processing');
  });

  test('one that is put back to before it had the channel has forgotten the channel, and shows it in no list', {
    timeout: 300_000,
  }, async () => {
    type Channel = { readonly channel_point: string; readonly chan_id: string; readonly active: boolean };
    const { shop, customer } = engine.pair;
    const channels = async () => (await shop.call<{ channels: readonly Channel[] }>('GET', '/v1/channels')).channels;
    const active = (count: number) => async (): Promise<boolean> => {
      const all = await channels().catch(() => []);
      return all.length === count && all.every((one) => one.active);
    };
    const putBack = await shop.backup();
    await eventually('its channels are usable again', active(2), 60_000);
    const before = new Set((await channels()).map((one) => one.channel_point));
    await openChannel(shop, customer, { local_funding_amount: '1000000', sat_per_vbyte: '5' });
    await engine.pair.mine(6);
    await eventually('it has another channel', active(3), 60_000);
    const opened = (await channels()).find((one) => !before.has(one.channel_point)) as Channel;
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const payment = { payment_request: to.request, timeout_seconds: 20, fee_limit_msat: '10000' };
    await eventually('it is on its way by that channel', async () => {
      shop.call('POST', '/v2/router/send', { ...payment, outgoing_chan_ids: [opened.chan_id] }).catch(() => undefined);
      return engine.held(to.hash, 1_000).then(
        () => true,
        () => false,
      );
    });
    await putBack();
    await eventually('the two have met', active(2), 60_000);
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    expect(await port.mayBeOlder(60_000)).toBe('no');
    expect(await port.mayBeOlder(60_000, { had: [...before], closedBefore: [] })).toBe('no');
    expect(await port.mayBeOlder(60_000, { had: [...before, opened.channel_point], closedBefore: [] })).toBe('yes');
    await engine.decide(to.hash, true);
    await engine.pair.mine(3);
    expect(await engine.arrived(to.hash)).toBe(1_000);
    // with the other side away its operator closes what is left by force: until a block comes none of it is called so in any list
    await customer.kill();
    for (const point of before) shop.call('DELETE', `/v1/channels/${point.replace(':', '/')}?force=true`).catch(() => undefined);
    await eventually('it closes them', active(0), 60_000);
    expect(await port.mayBeOlder(60_000, { had: [...before], closedBefore: [] })).toBe('yes');
    port.close();
  });
});
