// A payout that waits: why, and what lets it go on.
import { describe, expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { type Context, within } from '../../../src/flow/context.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { reconsiderPayout } from '../../../src/flow/payouts/held-reasons.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { OUTSIDE, owe } from '../../support/funded.ts';
import {
  approvalAbove,
  BTC,
  ctx,
  held,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  refusedWith,
  request,
  row,
  shopNotFinal,
  shopWith,
  trip,
  world,
} from './merchants.ts';

merchantsForAll();

describe('a payout waits', () => {
  test('for the breaker, then for what is owed, then for approval, and goes on when nothing is left', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000');
    await trip();
    await owe(ctx, merchantId, 70n);
    const made = await request(merchantId, '0.5');
    expect(made).toMatchObject({ status: 'pending', step: 'held', heldReason: 'breaker' });
    expect(await path(made.id)).toEqual(['payout.pending']);
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'breaker' });
    await clearBreakers(ctx.db, 'test', ctx.ports.clock.now());
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'receivable' });
    await owe(ctx, merchantId, -70n);
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
    await held();
    expect(await path(made.id)).toEqual(['payout.pending']);
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'ann' })).toMatchObject({ status: 'processing', step: 'queued' });
    expect(await row(made.id)).toMatchObject({ held_reason: null, approved_by: 'ann' });
    expect(await path(made.id)).toEqual(['payout.pending', 'payout.processing']);
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'bob' })).toMatchObject({ status: 'processing' });
    expect(await row(made.id)).toMatchObject({ approved_by: 'ann' });
  });

  test('for approval above the limit only, and still when the limit was raised since', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000.00');
    expect((await request(merchantId, '0.01')).status).toBe('processing');
    const above = await request(merchantId, '0.01000001');
    expect(above).toMatchObject({ status: 'pending', heldReason: 'approval', needsApproval: true });
    await approvalAbove(merchantId, null);
    await world.wait(86_400_000);
    await held();
    await reconsiderPayout(ctx, above.id);
    expect(await row(above.id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
    expect(await refusedWith(approvePayout(ctx, { payoutId: 'payout_0', by: 'ann' }))).toBe('payout_not_found');
  });

  test('for approval when no price is known while there is a limit', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000000');
    world.pass(301_000);
    try {
      expect(await request(merchantId, '0.01')).toMatchObject({ heldReason: 'approval', usdMinor: null });
    } finally {
      await world.wait(0);
    }
  });

  test('for approval by a limit that was lowered while another reason held it', async () => {
    const merchantId = await shopWith(BTC);
    await owe(ctx, merchantId, 1n);
    const made = await request(merchantId, '0.5');
    expect(made.heldReason).toBe('receivable');
    await approvalAbove(merchantId, '10');
    await owe(ctx, merchantId, -1n);
    await held();
    expect(await row(made.id)).toMatchObject({ held_reason: 'approval' });
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'ann' })).toMatchObject({ status: 'processing' });
  });

  test('again for what is owed while it is only queued, and stays processing without an event', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.5');
    await owe(ctx, merchantId, 9n, 'DOGE');
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'receivable' });
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: made.id }))).toBe('payout_not_cancellable');
    await owe(ctx, merchantId, -9n, 'DOGE');
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'processing', step: 'queued', held_reason: null });
    expect(await path(made.id)).toEqual(['payout.processing']);
  });

  test('again for the breaker while it is only queued: it is pending then, can be cancelled, and goes on when that is cleared', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await request(merchantId, '0.2'), await request(merchantId, '0.3')];
    const told: string[] = [];
    const heard = Promise.withResolvers<void>();
    const stop = await ctx.db.listen(
      ['hurry'],
      (_, job) => {
        told.push(job);
        if (job === 'last') heard.resolve();
      },
      heard.reject,
    );
    await trip();
    await trip();
    await world.admin.query(`select pg_notify('hurry', 'last')`);
    await Promise.all([heard.promise, heard.promise.then(stop)]);
    // it is woken once: one that is tripped again stops nothing new
    expect(told).toEqual(['held payouts', 'last']);
    await held();
    for (const { id } of [first, second])
      expect(await row(id)).toMatchObject({ status: 'pending', step: 'held', held_reason: 'breaker' });
    expect(await cancelPayout(ctx, { merchantId, payoutId: second.id })).toMatchObject({ status: 'failed', error: 'cancelled' });
    await clearBreakers(ctx.db, 'test', ctx.ports.clock.now());
    await held();
    expect(await row(first.id)).toMatchObject({ status: 'processing', step: 'queued', held_reason: null });
    expect(await path(first.id)).toEqual(['payout.processing', 'payout.pending', 'payout.processing']);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('by itself: a small one goes on beside a large one of the same merchant that is not final', async () => {
    const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
    const merchantId = await shopNotFinal();
    await trip();
    const large = await request(merchantId, '0.2', OUTSIDE, limited);
    world.pass(1);
    const small = await request(merchantId, '0.01', OUTSIDE, limited);
    await clearBreakers(ctx.db, 'test', ctx.ports.clock.now());
    await held(limited);
    await held(limited);
    expect(await row(large.id)).toMatchObject({ status: 'pending', held_reason: 'not_final' });
    expect(await row(small.id)).toMatchObject({ status: 'processing', held_reason: null });
    await world.mine(3);
  });

  test('not_final: what is paid out of credits that are not final is limited, and goes on by itself', async () => {
    const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
    const merchantId = await shopNotFinal();
    expect(await request(merchantId, '0.09', OUTSIDE, limited)).toMatchObject({ status: 'processing' });
    const told = Promise.withResolvers<string>();
    const stop = await ctx.db.listen(['hurry'], (_, job) => told.resolve(job), told.reject);
    const second = await request(merchantId, '0.02', OUTSIDE, limited);
    expect(second).toMatchObject({ status: 'pending', heldReason: 'not_final' });
    expect(await Promise.all([told.promise, told.promise.then(stop)])).toEqual(['held payouts', undefined]);
    // what waits is still here: a small one fits
    expect(await request(merchantId, '0.005', OUTSIDE, limited)).toMatchObject({ status: 'processing' });
    await held(limited);
    expect(await row(second.id)).toMatchObject({ status: 'pending', held_reason: 'not_final' });
    await world.mine(3);
    await held(limited);
    expect(await row(second.id)).toMatchObject({ status: 'processing', held_reason: null });
    expect(await request(merchantId, 'all', OUTSIDE, limited)).toMatchObject({ status: 'processing' });
  });

  test('not_final by ach: what it took of a balance counts, and what waits counts as still there', async () => {
    const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
    const merchantId = await shopNotFinal();
    const toBank = (amount: string) =>
      requestAchPayout(limited, { merchantId, amount, destination: 'ach:021000021:12345', sourceCurrency: null });
    expect(await toBank('9000')).toMatchObject({ status: 'processing' });
    const waits = await toBank('2000');
    expect(waits).toMatchObject({ status: 'pending', heldReason: 'not_final' });
    expect(await toBank('500')).toMatchObject({ status: 'processing' });
    expect(await request(merchantId, '0.01', OUTSIDE, limited)).toMatchObject({ status: 'pending', heldReason: 'not_final' });
    await held(limited);
    expect(await row(waits.id)).toMatchObject({ status: 'pending', held_reason: 'not_final' });
    await world.mine(3);
    await held(limited);
    expect(await row(waits.id)).toMatchObject({ status: 'processing', held_reason: null });
  });

  test('not_final: one limit for all currencies, also for requests at once', async () => {
    const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
    const merchantId = await shopWith(0n);
    for (const [currency, blocks] of [
      ['BTC', 6],
      ['LTC', 12],
    ] as const) {
      const paid = await world.create(50_000_00n, currency, merchantId);
      await world.pay(paid.transactionId, BTC / 2n, { currency });
      await world.mine(blocks, currency);
      await world.judge();
      expect(await of(merchantId, 'available', currency)).toBe(BTC / 2n);
      await world.admin.query('update payments set height = height + 3 where transaction_id = $1', [paid.transactionId]);
    }
    let other: ReturnType<typeof requestAchPayout> | undefined;
    await ctx.db.transaction(async (sql) => {
      const inside = within(limited, sql, () => undefined);
      expect(await request(merchantId, '0.09', OUTSIDE, inside)).toMatchObject({ status: 'processing' });
      const ach = { merchantId, amount: '9000', destination: 'ach:021000021:12345', sourceCurrency: 'LTC' } as const;
      other = requestAchPayout(limited, ach);
      await Promise.race([other, waitsForLock()]);
    });
    expect(await other).toMatchObject({ status: 'pending', heldReason: 'not_final' });
    await world.mine(3);
    await world.mine(3, 'LTC');
  });
});

/** Ends when a session of this database waits for an advisory lock. */
async function waitsForLock(): Promise<void> {
  for (;;) {
    const { rows } = await world.admin.query(
      `select from pg_locks where not granted and locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
    );
    if (rows.length > 0) return;
  }
}
