// A reimbursement is decided on when its payments are final, and signed later: what has become of them meanwhile is looked at again, up to its first
// signature, also before the judge has had time to.
import { expect, test } from 'vitest';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { giveUpUnsignedBatch } from '../../../src/flow/payouts/waiting-for-operator.ts';
import { cancelTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { mustNotLeave } from '../../../src/store/payouts/request-facts.ts';
import {
  capital,
  ctx,
  formed,
  green,
  PAID,
  payable,
  RATE,
  refundOf,
  refundServiceForEach,
  reimburse,
  service,
  status,
} from './refund-service.ts';

refundServiceForEach();

const MINUTE = 60_000;
/** One whose payment lies in suspense: its merchant owes nothing when that is lost. */
async function ofSuspense() {
  await capital();
  const { transactionId: id } = await service.create(500_00n);
  await cancelTransaction(ctx, { merchantId: service.merchantId, transactionId: id });
  const sent = await service.pay(id, PAID);
  await service.mine(6);
  await service.judge();
  await reimburse(id);
  return { id, sent };
}

test('one that waits for its batch is put into none while its payment is in no block, and ends when that is lost', async () => {
  const { id } = await ofSuspense();
  await service.vanish('BTC', 6);
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  await service.judge();
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  expect(await refundOf(id)).toMatchObject({ status: 'pending' });
  await service.wait(11 * MINUTE);
  await service.judge();
  expect([(await refundOf(id)).status, await payable(id), await status(id)]).toEqual(['failed', 0n, 'review']);
  await green();
});

test('one that is in a batch is not signed once its payment is gone, and leaves when it is back', async () => {
  const { id, sent } = await ofSuspense();
  const batch = await formed();
  expect(await mustNotLeave(ctx.db, batch.id)).toBe(false);
  await service.vanish('BTC', 6);
  expect(await mustNotLeave(ctx.db, batch.id)).toBe(true);
  expect(await giveUpUnsignedBatch(ctx, batch, batch.leaseEpoch, null)).toBe(true);
  await service.judge();
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
  await service.pay(id, PAID, { inputs: sent.facts.inputs });
  await service.mine(6);
  await service.judge();
  expect((await formed()).payouts.map(({ reimburses }) => reimburses)).toEqual([id]);
  expect(await payable(id)).toBe(PAID);
  await green();
});
