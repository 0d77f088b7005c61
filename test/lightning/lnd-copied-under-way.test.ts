// A real LND that is put back from a copy which was made while a payout was under way, after its recipient has taken it: the other side closes the channels by
// force, and once they are closed and it is started again, LND says that the payment has failed.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, open } from './funded-lnd.ts';

type Channels = { readonly channels?: readonly { readonly pending_htlcs: readonly unknown[] }[] };
type Pending = Record<'waiting_close_channels' | 'pending_force_closing_channels', readonly unknown[]>;

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);

  test('its word that the payment failed does not end it', { timeout: 300_000 }, async () => {
    const { shop } = engine.pair;
    const closing = async () => {
      const { waiting_close_channels: waits, pending_force_closing_channels: closes } = await shop.call<Pending>(
        'GET',
        '/v1/channels/pending',
      );
      return waits.length + closes.length;
    };
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, '0.00001');
    await eventually('it is on its way', async () => {
      clock.skewMs += 16_000;
      await at.look();
      return (await at.payment(id)).payment_index !== null;
    });
    await engine.held(to.hash);
    const putBack = await shop.backup();
    // its recipient takes it, and nobody here hears of it
    await engine.decide(to.hash, true);
    await eventually('both sides have it', async () => {
      const { channels = [] } = await shop.call<Channels>('GET', '/v1/channels');
      return channels.length === 2 && channels.every(({ pending_htlcs: held }) => held.length === 0);
    });
    expect(await engine.arrived(to.hash)).toBe(1_000);
    await putBack();
    await eventually('the other side has shown that it knows more', async () => (await closing()) > 0);
    await eventually(
      'all that was in the channels is back',
      async () => {
        await engine.pair.mine(1);
        return (await closing()) === 0;
      },
      120_000,
    );
    await engine.restart();
    type Listed = { readonly payments: readonly { readonly payment_hash: string; readonly status: string }[] };
    await eventually('it calls it failed', async () => {
      const { payments } = await shop.call<Listed>('GET', '/v1/payments?include_incomplete=true');
      return payments.some((one) => one.payment_hash === to.hash && one.status === 'FAILED');
    });
    for (let n = 0; n < 3; n++) {
      clock.skewMs += 61_000;
      await at.look();
    }
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  });
});
