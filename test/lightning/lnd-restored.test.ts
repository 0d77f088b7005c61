// A real LND whose channel is force-closed while it pays, and one that is put back from a copy of its folder: what it has then forgotten is noticed,
// nothing is paid again, nothing given back unseen.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acceptForgotten, acceptForgottenReceipt } from '../../src/flow/lightning/unasked-payments.ts';
import { checkPayoutStatus } from '../../src/flow/payouts/reads.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { HAS_LND } from '../support/lightning-engines.ts';
import { paidIn, unheardBy } from '../support/lightning-payouts.ts';
import { copyDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, isTaken, open } from './funded-lnd.ts';

const AMOUNT = '0.00001';

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);
  const status = async (id: string) => (await at.payout(id)).status;
  const becomes = (id: string, wanted: string, between: () => Promise<void> = async () => undefined) =>
    eventually(
      `it is ${wanted}`,
      async () => {
        await between();
        await at.look();
        return (await status(id)) === wanted;
      },
      120_000,
    );
  /** A payout whose recipient holds the payment. */
  async function held(): Promise<{ readonly id: string; readonly hash: string }> {
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, AMOUNT);
    await isTaken(id);
    await engine.held(to.hash);
    return { id, hash: to.hash };
  }
  /** After a start of our node: it can pay again, and be paid. */
  async function usable(): Promise<void> {
    const { shop, customer } = engine.pair;
    const pays = async (): Promise<boolean> => engine.pay((await at.create()).address, '');
    await eventually('its channels are usable again', () => pays().catch(() => false), 60_000);
    const routes = () => shop.call<{ routes?: readonly unknown[] }>('GET', `/v1/graph/routes/${customer.identity}/1000`);
    const canPay = async (): Promise<boolean> => ((await routes()).routes ?? []).length > 0;
    await eventually('it finds a route', () => canPay().catch(() => false), 60_000);
    await at.work();
  }

  test('a channel that is force-closed while it pays ends what the recipient took as paid', { timeout: 300_000 }, async () => {
    const { id, hash } = await held();
    const { shop } = engine.pair;
    type Listed = { readonly channel_point: string; readonly pending_htlcs: readonly unknown[] };
    const { channels } = await shop.call<{ channels: readonly Listed[] }>('GET', '/v1/channels');
    const used = channels.find(({ pending_htlcs: pending }) => pending.length > 0)!;
    // its answer goes on until the close is settled
    shop.call('DELETE', `/v1/channels/${used.channel_point.replace(':', '/')}?force=true`).catch(() => undefined);
    await eventually('it is closing', async () => {
      const left = await shop.call<{ channels: readonly Listed[] }>('GET', '/v1/channels');
      return left.channels.length < channels.length;
    });
    await engine.pair.mine(1);
    // its recipient may still take it on the chain, however long its invoice has expired
    clock.skewMs = 3 * 3_600_000;
    await at.look();
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    await engine.decide(hash, true);
    await becomes(id, 'completed', async () => {
      await engine.pair.mine(1);
      clock.skewMs += 60_000;
    });
    expect(await engine.arrived(hash)).toBe(1_000);
    expect(await at.compared()).toEqual([]);
  });

  test('one that is put back to before a payment of which no answer came is not believed that it failed', {
    timeout: 300_000,
  }, async () => {
    const putBack = await engine.pair.shop.backup();
    await usable();
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, AMOUNT);
    await at.look(unheardBy(at));
    await engine.held(to.hash);
    await putBack();
    type Pending = { readonly waiting_close_channels: readonly unknown[] };
    await eventually('the other side has shown that it knows more', async () => {
      const pending = await engine.pair.shop.call<Pending>('GET', '/v1/channels/pending');
      return pending.waiting_close_channels.length > 0;
    });
    const looks = async (): Promise<void> => {
      for (let n = 0; n < 4; n++) {
        clock.skewMs += 30_000;
        await at.look();
      }
    };
    await looks();
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    // also once the channel is closed, and its invoice has expired
    await engine.decide(to.hash, true);
    await engine.pair.mine(3);
    clock.skewMs += 2 * 3_600_000;
    await looks();
    expect(await engine.arrived(to.hash)).toBe(1_000);
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'the recipient has it' });
    expect(await status(id)).toBe('completed');
  });

  test('one that is put back together with the database is not believed about what the signer had it pay', {
    timeout: 300_000,
  }, async () => {
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, AMOUNT);
    const copy = await copyDatabase(at.url);
    const putBack = await engine.pair.shop.backup();
    await usable();
    await eventually('it is on its way', async () => {
      clock.skewMs += 16_000;
      await at.look();
      return (await at.payment(id)).payment_index !== null;
    });
    await engine.held(to.hash);
    await putBack();
    const restored = await at.onCopy(copy);
    await copy.db.query({ text: `update comparisons set timeline = 'another'` });
    const seen = () => checkPayoutStatus(restored.ctx, { merchantId: at.merchantId, payoutId: id });
    await eventually('nothing can be asked of it any more, or an operator is asked', async () => {
      clock.skewMs += 30_000;
      await restored.look();
      const { status: now, heldReason } = await seen();
      return now === 'failed' || heldReason !== null;
    });
    await engine.decide(to.hash, true);
    await engine.pair.mine(3);
    clock.skewMs += 2 * 3_600_000;
    await restored.look();
    expect(await engine.arrived(to.hash)).toBe(1_000);
    expect(await seen()).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    await restored.close();
    await copy.drop();
  });

  test('one that is put back from a copy stops payouts, and what it has forgotten waits for an operator', {
    timeout: 300_000,
  }, async () => {
    const before = await engine.invoice({ sat: 1_000 });
    const known = await at.request(before.request, AMOUNT);
    await becomes(known.id, 'completed');
    const putBack = await engine.pair.shop.backup();
    await usable();
    const lost = await engine.invoice({ sat: 1_000 });
    const forgotten = await at.request(lost.request, AMOUNT);
    await becomes(forgotten.id, 'completed');
    const open = await held();
    const came = await paidIn(at, engine, 50_00n);
    expect(await at.findings()).toEqual([]);
    await putBack();
    await eventually('it is noticed', async () => {
      await at.look();
      return (await openBreakers(at.ctx.db)).length > 0;
    });
    expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
    expect(await at.payout(open.id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    expect(await status(known.id)).toBe('completed');
    await at.work();
    // whatever its clock says: it is asked for nothing of what it has forgotten
    for (let hour = 0; hour < 3; hour++) {
      clock.skewMs += 3_600_000;
      await at.look();
    }
    expect(await status(open.id)).toBe('processing');
    await at.compare();
    const findings = await at.findings();
    const hash = await at.hashOf(came);
    expect(findings).toContainEqual(expect.stringContaining(`LN-5: ${forgotten.id} was paid`));
    expect(findings).toContainEqual(expect.stringContaining(`LN-2: ${hash}`));
    expect(await acceptForgotten(at.ctx, lost.hash)).toBe(forgotten.id);
    for (const finding of findings) {
      const received = /^LN-2: ([0-9a-f]{64})/.exec(finding)?.[1];
      if (received !== undefined) expect(await acceptForgottenReceipt(at.ctx, received)).toMatch(/^txn_/);
    }
    await engine.decide(open.hash, true);
    await resolvePayout(at.ctx, { payoutId: open.id, outcome: 'paid', evidence: 'the recipient has it' });
    expect(await at.findings()).toEqual([]);
    expect((await at.path(came)).at(-1)).toBe('succeeded');
  });
});
