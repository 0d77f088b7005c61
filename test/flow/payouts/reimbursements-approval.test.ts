// Reimbursements above the merchant's approval limit, and those that the signer refuses: they wait for a person, and nothing else lets them go.
import { expect, test } from 'vitest';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { approvePayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { holdForOperator } from '../../../src/flow/payouts/waiting-for-operator.ts';
import { cancelTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { mustNotLeave } from '../../../src/store/payouts/request-facts.ts';
import { OUTSIDE, owe } from '../../support/funded.ts';
import {
  capital,
  ctx,
  formed,
  green,
  lose,
  mined,
  PAID,
  paid,
  payable,
  RATE,
  refundServiceForEach,
  reimburse,
  service,
  signed,
  status,
} from './refund-service.ts';

refundServiceForEach();

const limit = (usd: string | null) =>
  setSettings(ctx, {
    merchantId: service.merchantId,
    scopes: new Set(['payouts'] as const),
    change: { payoutApprovalAbove: usd },
  });
const row = async (transactionId: string) =>
  (await service.admin.query('select * from payouts where reimburses = $1', [transactionId])).rows[0];
const waits = { status: 'pending', step: 'held', held_reason: 'approval' };

test('one above the limit waits for its approval once its payments are final, and then leaves', async () => {
  await capital();
  await limit('1');
  const { id } = await paid(3);
  await reimburse(id);
  expect(await row(id)).toMatchObject({ held_reason: 'not_final', needs_approval: true });
  await service.mine(3);
  await service.judge();
  expect(await row(id)).toMatchObject(waits);
  await service.mine(1);
  await service.judge();
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  await green();
  const { id: payoutId } = await row(id);
  expect(await approvePayout(ctx, { payoutId, by: 'ann' })).toMatchObject({ status: 'processing', step: 'queued' });
  const batch = await formed();
  await mined(batch, await signed(batch));
  expect(await progress(ctx, batch.id)).toBe('confirmed');
  await service.judge();
  expect([await status(id), await payable(id)]).toEqual(['reimbursed', 0n]);
  await green();
});

test('one of final payments waits at once; at the limit, and where the operator asks himself, none does', async () => {
  await capital();
  await limit('1');
  const [first, second] = [await paid(6), await paid(6)];
  await reimburse(first.id);
  expect(await row(first.id)).toMatchObject(waits);
  const { usd_minor: worth } = await row(first.id);
  const asked = { merchantId: null, transactionId: second.id, destination: OUTSIDE, part: null, currency: null };
  await reimburseTransaction(ctx, asked);
  expect(await row(second.id)).toMatchObject({ status: 'processing', step: 'queued', needs_approval: false });
  await limit((Number(worth) / 100).toFixed(2));
  await service.wait(86_400_000);
  const third = await paid(6);
  await reimburse(third.id);
  expect(await row(third.id)).toMatchObject({ step: 'queued' });
  await limit(((Number(worth) - 1) / 100).toFixed(2));
  const fourth = await paid(6);
  await reimburse(fourth.id);
  expect(await row(fourth.id)).toMatchObject(waits);
});

test('an approval that comes early does not shorten the wait for the final depth', async () => {
  await capital();
  await limit('1');
  const { id } = await paid(3);
  await reimburse(id);
  const { id: payoutId } = await row(id);
  expect(await approvePayout(ctx, { payoutId, by: 'ann' })).toMatchObject({ status: 'pending', heldReason: 'not_final' });
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  await service.mine(3);
  await service.judge();
  expect(await row(id)).toMatchObject({ status: 'processing', step: 'queued', approved_by: 'ann' });
});

test('one that waits for a person ends when its payments are lost, and they are where they were', async () => {
  await capital();
  await limit('1');
  const { id } = await paid(6);
  await reimburse(id);
  expect(await row(id)).toMatchObject(waits);
  await lose(6);
  expect(await row(id)).toMatchObject({ status: 'failed', error: 'payments_lost' });
  expect(await payable(id)).toBe(0n);
  await green();
});

test('one that the signer has refused waits too: no verdict about its transaction lets it go', async () => {
  await capital();
  const { id } = await paid(6);
  await reimburse(id);
  const { id: payoutId } = await row(id);
  await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId, why: 'above the limit' }));
  expect(await row(id)).toMatchObject(waits);
  await service.admin.query('insert into due_marks (transaction_id) values ($1)', [id]);
  await service.mine(1);
  await service.judge();
  expect(await row(id)).toMatchObject(waits);
  expect(await payable(id)).toBe(PAID);
});

test('one that takes from available waits while its merchant owes something; one that only takes from suspense does not', async () => {
  await capital();
  const { id } = await paid(6);
  await reimburse(id);
  await owe(ctx, service.merchantId, 5n);
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  const { transactionId: cancelled } = await service.create(500_00n);
  await cancelTransaction(ctx, { merchantId: service.merchantId, transactionId: cancelled });
  await service.pay(cancelled, PAID);
  await service.mine(6);
  await service.judge();
  await reimburse(cancelled);
  const batch = await formed();
  expect(batch.payouts.map(({ reimburses }) => reimburses)).toEqual([cancelled]);
  await owe(ctx, service.merchantId, -5n);
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect(await row(id)).toMatchObject({ step: 'batched' });
  expect(await mustNotLeave(ctx.db, (await row(id)).batch_id)).toBe(false);
  await owe(ctx, service.merchantId, 5n);
  expect(await mustNotLeave(ctx.db, (await row(id)).batch_id)).toBe(true);
  expect(await mustNotLeave(ctx.db, batch.id)).toBe(false);
});
