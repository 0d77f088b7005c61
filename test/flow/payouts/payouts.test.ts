// A payout's request: what is refused, what is booked, what a crash leaves.
import { createPublicKey, verify } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { intentBytes } from '../../../src/core/payouts/intent.ts';
import type { Refusal } from '../../../src/core/refusal.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { FEE_MAX, OUTSIDE, owe, tellFee } from '../../support/funded.ts';
import {
  BTC,
  counts,
  ctx,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  refusedWith,
  request,
  row,
  SCOPES,
  shopWith,
  world,
} from './merchants.ts';

merchantsForAll();

describe('a request', () => {
  test('that nothing holds is processing: amount and highest fee leave available for held, one event', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.50');
    expect(made).toMatchObject({ status: 'processing', step: 'queued', heldReason: null, amountText: '0.50', amount: BTC / 2n });
    expect(made).toMatchObject({ usdMinor: 50_000_00n, feeMax: FEE_MAX, fee: null, automatic: false });
    expect(await of(merchantId, 'available')).toBe(BTC / 2n - FEE_MAX);
    expect(await of(merchantId, 'held')).toBe(BTC / 2n + FEE_MAX);
    expect(await path(made.id)).toEqual(['payout.processing']);
    const { rows } = await world.admin.query('select key, kind from ledger.entry where payout_id = $1', [made.id]);
    expect(rows).toEqual([{ key: `po:${made.id}:hold`, kind: 'payout_hold' }]);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('is signed by the key of the API, and any other field is not', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.25');
    const { intent, intent_key: keyId, script } = (await row(made.id)) as { intent: Buffer; intent_key: string; script: Buffer };
    const x = Buffer.from(keyId, 'hex').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const signed = {
      network: ctx.network,
      payoutId: made.id,
      merchantId,
      method: 'bitcoin',
      currency: 'BTC',
      amount: 25_000_000n,
      feeMax: FEE_MAX,
      destination: script.toString('hex'),
      createdAtMs: made.createdAtMs,
      reimburses: null,
    };
    expect(verify(null, intentBytes(signed), key, intent)).toBe(true);
    expect(verify(null, intentBytes({ ...signed, amount: 25_000_001n }), key, intent)).toBe(false);
  });

  test('for all takes the largest amount that leaves its fee, and answers it with eight decimals', async () => {
    const merchantId = await shopWith(BTC + 5n);
    const made = await request(merchantId, 'all');
    expect(made.amount).toBe(BTC + 5n - FEE_MAX);
    expect(made.amountText).toBe('0.99996005');
    expect(await of(merchantId, 'available')).toBe(0n);
  });

  test('for exactly what the balance covers is taken, for one satoshi more it is refused', async () => {
    const merchantId = await shopWith(100_000n + FEE_MAX);
    const before = await counts();
    expect(await refusedWith(request(merchantId, '0.00100001'))).toBe('insufficient_balance');
    expect(await counts()).toEqual(before);
    expect((await request(merchantId, '0.001')).status).toBe('processing');
    expect(await of(merchantId, 'available')).toBe(0n);
    expect(await refusedWith(request(merchantId, '0.001'))).toBe('insufficient_balance');
  });

  test('is refused in the order address, allow-list, minimum, fee, balance, and leaves nothing', async () => {
    const poor = await shopWith(0n);
    const rich = await shopWith(BTC);
    const tiny = await shopWith(90_000n);
    const own = await world.create(50_00n, 'BTC', rich);
    const { rows } = await world.admin.query(`select id from account_xpubs where currency = 'BTC'`);
    const script = ctx.ports.destinations.outputScript('BTC', OUTSIDE_TOO);
    await world.admin.query(
      `insert into own_addresses (account_xpub_id, address_index, currency, script) values ($1, 7, 'BTC', $2)`,
      [rows[0].id, Buffer.from(script)],
    );
    await setSettings(ctx, { merchantId: tiny, scopes: SCOPES, change: { payoutAllowList: ['bcrt1qother'] } });
    const before = await counts();
    expect(await refusedWith(request(rich, '0.1', own.address))).toBe('invalid_destination');
    expect(await refusedWith(request(poor, '0.0001', own.address))).toBe('payout_below_minimum');
    expect(await refusedWith(request(rich, '0.1', OUTSIDE_TOO))).toBe('invalid_destination');
    expect(await refusedWith(request(tiny, '0.0001'))).toBe('destination_not_allowed');
    expect(await refusedWith(request(poor, '0.00099999'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(poor, '0'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(poor, '0.001'))).toBe('insufficient_balance');
    expect(await refusedWith(request(poor, 'all'))).toBe('insufficient_balance');
    await setSettings(ctx, { merchantId: tiny, scopes: SCOPES, change: { payoutAllowList: [OUTSIDE] } });
    await world.wait(86_400_000);
    expect(await refusedWith(request(tiny, 'all'))).toBe('payout_below_minimum');
    await world.admin.query('delete from fee_rates');
    try {
      expect(await refusedWith(request(poor, '0.00099999'))).toBe('payout_below_minimum');
      expect(await refusedWith(request(rich, '0.1'))).toBe('currency_unavailable');
    } finally {
      await tellFee(ctx);
    }
    expect(await counts()).toEqual(before);
    expect(await of(rich, 'available')).toBe(BTC);
  });

  test('in a currency that is owed finds nothing available', async () => {
    const merchantId = await shopWith(0n);
    await owe(ctx, merchantId, 5_000_000n, 'BTC');
    expect(await refusedWith(request(merchantId, 'all'))).toBe('insufficient_balance');
  });

  test('wakes the worker once for all that come within a second, and again afterwards', async () => {
    const merchantId = await shopWith(BTC);
    const client = new pg.Client({ connectionString: world.url });
    await client.connect();
    await client.query('listen hurry');
    /** How often the worker was woken until now: notifications come in their order. */
    async function woken(): Promise<number> {
      const heard: string[] = [];
      const { promise, resolve } = Promise.withResolvers<void>();
      client.on('notification', ({ payload = '' }) => (payload === 'marker' ? resolve() : void heard.push(payload)));
      for (let n = 0; n < 5; n++) await request(merchantId, '0.001');
      await world.admin.query("select pg_notify('hurry', 'marker')");
      await promise;
      client.removeAllListeners('notification');
      return heard.filter((names) => names.split(',').includes('payouts')).length;
    }
    try {
      for (let n = 0; n < 2; n++) {
        world.pass(2_000);
        expect(await woken()).toBe(1);
      }
      // one by another method waits for something else
      world.pass(2_000);
      const { rows } = await world.admin.query('select id, created_at from payouts where merchant_id = $1 limit 1', [merchantId]);
      const write = (method: string, at: Date) =>
        world.admin.query('update payouts set method = $2, created_at = $3 where id = $1', [rows[0].id, method, at]);
      await write('usdt', new Date(world.ctx.ports.clock.now()));
      expect(await woken()).toBe(1);
      await write('bitcoin', rows[0].created_at);
    } finally {
      await client.end();
    }
  });

  test('a hundred at once on a balance that covers exactly fifty: exactly fifty are taken', async () => {
    const merchantId = await shopWith(50n * (1_000_000n + FEE_MAX));
    const done = await Promise.all(
      Array.from({ length: 100 }, () =>
        request(merchantId, '0.01').then(
          () => 'taken',
          (error: Refusal) => error.code,
        ),
      ),
    );
    expect(done.filter((one) => one === 'taken')).toHaveLength(50);
    expect(done.filter((one) => one === 'insufficient_balance')).toHaveLength(50);
    expect(await of(merchantId, 'available')).toBe(0n);
    expect(await of(merchantId, 'held')).toBe(50n * (1_000_000n + FEE_MAX));
    expect(await ledgerFindings()).toEqual([]);
  });

  test('whose session is cut at any moment leaves the payout and its hold, or neither', async () => {
    const merchantId = await shopWith(BTC);
    let cut = 0;
    for (let round = 0; round < 60; round++) {
      const asked = request(merchantId, '0.001').then(
        () => 'done',
        () => 'cut',
      );
      await new Promise((resolve) => setTimeout(resolve, round % 12));
      await world.admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test' and datname = current_database() and state <> 'idle'`,
      );
      if ((await asked) === 'cut') cut += 1;
    }
    expect(cut).toBeGreaterThan(0);
    const { rows } = await world.admin.query(
      `select (select count(*)::int from payouts p where merchant_id = $1) as payouts,
              (select count(*)::int from payouts p where merchant_id = $1 and not exists (select from ledger.entry e where e.key = 'po:' || p.id || ':hold')) as unheld,
              (select count(*)::int from ledger.entry e where kind = 'payout_hold' and not exists (select from payouts p where p.id = e.payout_id)) as unclaimed`,
      [merchantId],
    );
    expect(rows[0]).toMatchObject({ unheld: 0, unclaimed: 0 });
    expect(await of(merchantId, 'held')).toBe(BigInt(rows[0].payouts) * (100_000n + FEE_MAX));
    expect(await ledgerFindings()).toEqual([]);
  });
});
const OUTSIDE_TOO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
