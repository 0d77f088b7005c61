// A payout or reimbursement that a stranger's transaction seems to have paid, as a person has decided it: the books agree, whatever he has found.
import { expect, test } from 'vitest';
import { recordUnknown } from '../../../src/flow/payouts/after-restore/unknown-movements.ts';
import { reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { OUTSIDE } from '../../support/funded.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';

batchServiceForEach();

test.each(['paid', 'failed'] as const)(
  'a payout that a stranger seems to have paid, decided by hand as %s, leaves the books green',
  async (outcome) => {
    await batches.earn(2);
    const id = await batches.request('0.002');
    await recordUnknown(ctx, 'BTC', { movements: [], payoutIds: [id] });
    expect(await resolvePayout(ctx, { payoutId: id, outcome, evidence: 'seen in block 7' })).toMatchObject({
      status: outcome === 'paid' ? 'completed' : 'failed',
    });
    expect(await service.findings()).toEqual([]);
    expect(await service.balance('asset:chain:BTC'), 'no output of ours has moved').toBe(2_000_000n);
  },
);

test.each(['paid', 'failed'] as const)(
  'a reimbursement that a stranger seems to have paid, decided by hand as %s, leaves the books green',
  async (outcome) => {
    await batches.earn(1);
    const { rows } = await service.admin.query('select id from transactions');
    const transactionId = rows[0].id as string;
    const { merchantId } = service;
    await reimburseTransaction(ctx, { merchantId, transactionId, destination: OUTSIDE, part: null, currency: null });
    await service.judge();
    const refund = (await service.admin.query('select id, step from payouts')).rows[0];
    expect(refund.step).toBe('queued');
    await recordUnknown(ctx, 'BTC', { movements: [], payoutIds: [refund.id] });
    await resolvePayout(ctx, { payoutId: refund.id, outcome, evidence: 'seen in block 7' });
    await service.judge();
    expect((await service.path(transactionId)).at(-1)).toBe(outcome === 'paid' ? 'reimbursed' : 'succeeded');
    expect(await service.findings()).toEqual([]);
  },
);
