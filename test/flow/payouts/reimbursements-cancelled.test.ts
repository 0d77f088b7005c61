// An operator cancels a reimbursement that waits: its payments lie where they lay, and the transaction can be decided anew. Otherwise one whose
// destination cannot be paid would wait for ever.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { restoreSignature } from '../../../src/flow/payouts/after-restore/restored-signatures.ts';
import { formBatch, priced, signingRequest } from '../../../src/flow/payouts/batches.ts';
import { cancelByOperator, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { holdForOperator } from '../../../src/flow/payouts/waiting-for-operator.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { giveUpBatch } from '../../../src/store/payouts/batches.ts';
import { openMovements } from '../../../src/store/payouts/unknown-movements.ts';
import {
  capital,
  ctx,
  formed,
  green,
  mined,
  PAID,
  paid,
  payable,
  RATE,
  refundOf,
  refundServiceForEach,
  reimburse,
  service,
  signed,
  signedRefund,
  status,
} from './refund-service.ts';

refundServiceForEach();

const rowOf = async (transactionId: string) =>
  (await service.admin.query('select * from payouts where reimburses = $1 order by created_at desc, id desc', [transactionId]))
    .rows[0];
const cancel = (payoutId: string) => cancelByOperator(ctx, { payoutId, by: 'ann' });
/** As the driver holds one that its node or the signer refuses. */
async function refusedOne(id: string): Promise<string> {
  const { id: payoutId } = await rowOf(id);
  await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId, why: 'it cannot be paid now' }));
  return payoutId;
}

test('one that waits for the operator is cancelled, what it took is credited again, and another one may follow', async () => {
  await capital();
  const { id } = await paid(6);
  await reimburse(id);
  const payoutId = await refusedOne(id);
  expect(await cancel(payoutId)).toMatchObject({ status: 'failed', error: 'cancelled' });
  await service.judge();
  expect([await payable(id), await service.available(), await status(id)]).toEqual([0n, PAID, 'succeeded']);
  expect(await refundOf(id)).toMatchObject({ status: 'failed' });
  await green();
  // a second one changes nothing
  expect(await cancel(payoutId)).toMatchObject({ status: 'failed', error: 'cancelled' });
  await service.judge();
  expect(await service.available()).toBe(PAID);
  await reimburse(id);
  const batch = await formed();
  await mined(batch, await signed(batch));
  expect(await progress(ctx, batch.id)).toBe('confirmed');
  await service.judge();
  expect([await status(id), await payable(id), await service.available()]).toEqual(['reimbursed', 0n, 0n]);
  await green();
});

test('what it took from suspense lies there again, and can be accepted', async () => {
  await capital();
  const { transactionId: id } = await service.create(500_00n);
  await cancelTransaction(ctx, { merchantId: service.merchantId, transactionId: id });
  await service.pay(id, PAID);
  await service.mine(3);
  await service.judge();
  await reimburse(id);
  const { id: payoutId, held_reason } = await rowOf(id);
  expect(held_reason).toBe('not_final');
  await cancel(payoutId);
  await service.judge();
  expect([await payable(id), await service.balance(`suspense:${id}:BTC`)]).toEqual([0n, PAID]);
  await green();
  await resolveTransaction(ctx, { merchantId: service.merchantId, transactionId: id, action: 'accept', part: null });
  await service.judge();
  expect(await service.available()).toBe(PAID);
  await green();
});

test('one that may leave, or has left, is not cancelled; and a merchant cancels none', async () => {
  const { id } = await signedRefund();
  const { id: payoutId } = await rowOf(id);
  await expect(cancel(payoutId)).rejects.toMatchObject({ code: 'payout_not_cancellable' });
  const other = await paid(6);
  await reimburse(other.id);
  const { id: queued } = await rowOf(other.id);
  await expect(cancel(queued)).rejects.toMatchObject({ code: 'payout_not_cancellable' });
  await refusedOne(other.id);
  await expect(cancelPayout(ctx, { merchantId: service.merchantId, payoutId: queued })).rejects.toMatchObject({
    code: 'payout_not_found',
  });
  await green();
});

test('cancelled, decided and let go at the same moment: one of them, and nothing is lost or doubled', async () => {
  await capital();
  const ids = [];
  for (let n = 0; n < 4; n++) ids.push((await paid(6)).id);
  for (const id of ids) {
    await reimburse(id);
    await refusedOne(id);
  }
  const cancels = ids.map(async (id) => cancel((await rowOf(id)).id).catch((error) => error.code));
  const judged = service.admin
    .query('insert into due_marks (transaction_id) select unnest($1::text[])', [ids])
    .then(() => service.judge());
  await Promise.all([...cancels, judged, formBatch(ctx, 'BTC', RATE), service.judge()]);
  await service.judge();
  for (const id of ids) {
    expect([await rowOf(id).then(({ error }) => error), await payable(id)]).toEqual(['cancelled', 0n]);
  }
  expect(await service.available()).toBe(4n * PAID);
  await green();
});

test('a signature for it that has left takes nothing back: payouts stop until an operator has booked it', async () => {
  await capital();
  const { id } = await paid(6);
  await reimburse(id);
  const batch = await formed();
  const selection = priced(batch, RATE);
  if (selection === null) throw new Error('it cannot be paid at this rate');
  const lost = {
    sequence: 1,
    request: signingRequest(batch, 1, selection),
    txid: randomBytes(32).toString('hex'),
    raw: '00',
    fee: selection.fee.toString(),
    vbytes: selection.vbytes,
    signedAtMs: ctx.ports.clock.now(),
  };
  expect(await giveUpBatch(ctx.db, batch.id, batch.leaseEpoch)).toBe(true);
  await cancel(await refusedOne(id));
  await service.judge();
  expect(await service.available()).toBe(PAID);
  expect(await restoreSignature(ctx, lost, 'seen')).toBe('unknown_payout');
  await service.judge();
  expect([await rowOf(id).then(({ status: now }) => now), await payable(id), await service.available()]).toEqual([
    'failed',
    0n,
    PAID,
  ]);
  expect((await openMovements(ctx.db)).map(({ txid }) => txid)).toEqual([lost.txid]);
  expect((await service.findings()).filter((finding) => !finding.startsWith('OUT-3'))).toEqual([]);
});
