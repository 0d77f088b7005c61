// A reimbursement that failed for good by blocks which the chain has left, and whose transaction is mined after all: its payments were given to
// somebody else in between, so the service bears it, once its operator has said so.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { recoverFailed } from '../../../src/flow/payouts/after-restore/recover-failed.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import {
  ctx,
  green,
  mined,
  PAID,
  payable,
  refundOf,
  refundServiceForEach,
  reimburse,
  service,
  signedRefund,
  status,
} from './refund-service.ts';

refundServiceForEach();

test.each([
  ['before it was confirmed', false],
  ['after it was confirmed', true],
])('what failed %s is booked as the loss of the service, and may be asked for again', async (_, isConfirmed) => {
  const { id, batch, transaction } = await signedRefund();
  if (isConfirmed) {
    await mined(batch, transaction);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    await service.judge();
    await service.vanish('BTC', 1);
  }
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(6);
  expect(await progress(ctx, batch.id)).toBe(isConfirmed ? 'displaced' : 'failed');
  await service.judge();
  await service.vanish('BTC', 6);
  await mined(batch, transaction);
  await service.mine(5);
  await progress(ctx, batch.id);
  await service.judge();
  const before = await service.available();
  const recover = (acceptsLoss: boolean) => recoverFailed(ctx, { txid: transaction.txid, by: 'operator test', acceptsLoss });
  await expect(recover(false)).rejects.toThrow('has paid reimbursements of 0.00500000 BTC that had failed');
  const fee = BigInt(transaction.fee);
  expect(await recover(true)).toMatchObject({ lost: PAID - fee, fee, currency: 'BTC' });
  await expect(recover(true)).rejects.toThrow('which is final');
  expect(await refundOf(id)).toMatchObject({ status: 'failed' });
  expect([await service.available(), await payable(id), await service.balance('expense:reorg_loss:BTC')]).toEqual([
    before,
    0n,
    PAID,
  ]);
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  await green();
  // and once more the chain leaves the block that has it
  await service.vanish('BTC', 6);
  expect(await progress(ctx, batch.id)).toBe('reorged');
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(6);
  await progress(ctx, batch.id);
  await service.judge();
  const taken = batch.inputs.reduce((all, { amount }) => all + amount, 0n);
  expect([await refundOf(id), await service.balance('expense:reorg_loss:BTC')]).toMatchObject([{ status: 'failed' }, taken]);
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  await green();
  await service.vanish('BTC', 6);
  await mined(batch, transaction);
  await service.mine(5);
  await recover(true);
  expect([await service.available(), await service.balance('expense:reorg_loss:BTC')]).toEqual([before, PAID]);
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  await green();
  await clearAfterAudit(ctx, await runAudit(ctx), 'test');
  expect(await openBreakers(ctx.db)).toEqual([]);
  await reimburse(id, isConfirmed ? { part: 'excess' } : {});
  expect(await payable(id)).toBe(PAID);
  expect(await status(id)).toBe(isConfirmed ? 'reimbursed' : 'succeeded');
  await green();
});
