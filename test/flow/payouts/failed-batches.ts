// A service on a database whose batches fail by blocks that the chain leaves again: what the tests of `payout recover` share.
import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { type RecoveredFailed, recoverFailed } from '../../../src/flow/payouts/after-restore/recover-failed.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import type { Batch } from '../../../src/store/payouts/batch-rows.ts';
import { batches, ctx, service } from './batch-service.ts';

export const AMOUNT = 200_000n;
export const owed = (): Promise<bigint> => service.balance(`asset:receivable:merchant:${service.merchantId}:BTC`);
export const recover = (txid: string, acceptsLoss = false): Promise<RecoveredFailed | null> =>
  recoverFailed(ctx, { txid, by: 'operator test', acceptsLoss });
export const eventsOf = async (id: string): Promise<string[]> =>
  (await service.admin.query('select type from events where object_id = $1 order by sequence', [id])).rows.map(
    ({ type }) => type,
  );
/** The driver has looked at everything that the chain has shown. */
export const looked = async (): Promise<void> => {
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
};
/** What stopped payouts is over: only a green audit lets them go on. */
export async function cleared(): Promise<void> {
  await looked();
  expect(await service.findings()).toEqual([]);
  await clearAfterAudit(ctx, await runAudit(ctx), 'test');
  expect(await openBreakers(ctx.db)).toEqual([]);
}

/** A stranger spends its first input so deep that it fails; whatever else it spent is given back. */
export async function fails(
  batch: Batch,
  how: 'failed' | 'displaced' = 'failed',
  inputs = batch.inputs.slice(0, 1),
): Promise<void> {
  service.spend(randomBytes(32).toString('hex'), inputs);
  await service.mine(6);
  expect(await progress(ctx, batch.id)).toBe(how);
  await cleared();
}
/** The chain leaves the stranger's blocks, and has the transaction of the batch in their place, final. */
export async function minedAfterAll(batch: Batch, transaction: SignedTransaction, blocks = 6): Promise<void> {
  await service.vanish('BTC', 6);
  await batches.mined(batch, transaction, blocks);
  await progress(ctx, batch.id);
}
