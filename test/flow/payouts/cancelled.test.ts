// A payout that is cancelled while it waits: what comes back, and who may.
import { describe, expect, test } from 'vitest';
import { answerOnce } from '../../../src/flow/idempotency.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { reconsiderPayout } from '../../../src/flow/payouts/held-reasons.ts';
import { checkPayoutStatus } from '../../../src/flow/payouts/reads.ts';
import { saveChecked } from '../../../src/store/payouts/comparisons.ts';
import { FEE_MAX, owe } from '../../support/funded.ts';
import {
  approvalAbove,
  BTC,
  ctx,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  refusedWith,
  request,
  row,
  shopWith,
  world,
} from './merchants.ts';

merchantsForAll();

describe('a cancel', () => {
  const waiting = async (amount: bigint): Promise<{ merchantId: bigint; payoutId: string }> => {
    const merchantId = await shopWith(amount);
    await approvalAbove(merchantId, '0');
    return { merchantId, payoutId: (await request(merchantId, 'all')).id };
  };

  test('fails a payout that waits with the error cancelled and gives its hold back; twice is the same', async () => {
    const payout = await waiting(BTC);
    expect(await of(payout.merchantId, 'available')).toBe(0n);
    const first = await cancelPayout(ctx, payout);
    expect(first).toMatchObject({ status: 'failed', step: 'ended', error: 'cancelled', heldReason: null });
    expect(await of(payout.merchantId, 'available')).toBe(BTC);
    expect(await of(payout.merchantId, 'held')).toBe(0n);
    expect(await cancelPayout(ctx, payout)).toEqual(first);
    expect(await of(payout.merchantId, 'available')).toBe(BTC);
    expect(await path(payout.payoutId)).toEqual(['payout.pending', 'payout.failed']);
    expect(await refusedWith(approvePayout(ctx, { payoutId: payout.payoutId, by: 'ann' }))).toBe('not_resolvable');
    expect(await ledgerFindings()).toEqual([]);
  });

  test('cancel_waits_for_compare: is refused until our outputs were compared since PostgreSQL was started; its key may be used again', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1.00');
    const { id } = await request(merchantId, '0.5');
    await world.admin.query(`insert into comparisons values ('BTC', 1, pg_postmaster_start_time() - interval '1 second')`);
    const call = { merchantId, operation: 'cancel', key: 'k', bodyHash: Buffer.alloc(32), kept: 'a day' } as const;
    const cancel = () =>
      answerOnce(ctx, call, async (on) => (await cancelPayout(on, { merchantId, payoutId: id })).status, String);
    expect(await refusedWith(cancel())).toBe('payout_not_cancellable');
    await saveChecked(ctx.db, 'BTC', 1);
    expect(await cancel()).toMatchObject({ text: 'failed', replayed: false });
  });

  test('release_repays: the hold that comes back repays what is owed first', async () => {
    const payout = await waiting(BTC);
    await owe(ctx, payout.merchantId, 30_000_000n, 'BTC');
    await cancelPayout(ctx, payout);
    expect(await world.balance(`asset:receivable:merchant:${payout.merchantId}:BTC`)).toBe(0n);
    expect(await of(payout.merchantId, 'available')).toBe(70_000_000n);
    const other = await waiting(BTC);
    await owe(ctx, other.merchantId, 3n * BTC, 'BTC');
    await cancelPayout(ctx, other);
    expect(await world.balance(`asset:receivable:merchant:${other.merchantId}:BTC`)).toBe(2n * BTC);
    expect(await of(other.merchantId, 'available')).toBe(0n);
  });

  test('is refused for a payout that is processing, and for that of another merchant as for none', async () => {
    const merchantId = await shopWith(BTC);
    const stranger = await shopWith(0n);
    const made = await request(merchantId, '0.5');
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: made.id }))).toBe('payout_not_cancellable');
    for (const payoutId of [made.id, 'payout_none']) {
      expect(await refusedWith(cancelPayout(ctx, { merchantId: stranger, payoutId }))).toBe('payout_not_found');
      expect(await refusedWith(checkPayoutStatus(ctx, { merchantId: stranger, payoutId }))).toBe('payout_not_found');
    }
  });

  test('and the job that lets it go on: one of them wins, and the books follow', async () => {
    const outcomes = new Set<string>();
    for (let round = 0; round < 25; round++) {
      const merchantId = await shopWith(BTC);
      await owe(ctx, merchantId, 1n);
      const { id: payoutId } = await request(merchantId, '0.5');
      await owe(ctx, merchantId, -1n);
      const going = [() => reconsiderPayout(ctx, payoutId), () => cancelPayout(ctx, { merchantId, payoutId })];
      if (round % 2 === 0) going.reverse();
      const [, cancelled] = await Promise.allSettled(going.map((go) => go())).then((done) =>
        round % 2 === 0 ? done.reverse() : done,
      );
      const { status, step } = await row(payoutId);
      outcomes.add(String(status));
      if (cancelled?.status === 'fulfilled') expect([status, step]).toEqual(['failed', 'ended']);
      else expect([status, step]).toEqual(['processing', 'queued']);
      expect(await of(merchantId, 'held')).toBe(status === 'failed' ? 0n : BTC / 2n + FEE_MAX);
    }
    expect(outcomes.size).toBe(2);
    expect(await ledgerFindings()).toEqual([]);
  }, 60_000);
});
