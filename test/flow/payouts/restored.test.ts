// What the signer has signed and a database does not know, because it is an older copy: each signature is written back as what it was, whatever
// the copy's merchants did meanwhile, and one that cannot be is named until an operator has it booked.
import { expect, test } from 'vitest';
import type { PayingPort } from '../../../src/core/ports.ts';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { awaitComparison } from '../../../src/flow/payouts/after-restore/comparison-wait.ts';
import { restoreSignature } from '../../../src/flow/payouts/after-restore/restored-signatures.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { firstWaiting } from '../../../src/store/payouts/after-restore/waiting-signatures.ts';
import { readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { saveChecked } from '../../../src/store/payouts/comparisons.ts';
import { resolveMovement } from '../../../src/store/payouts/unknown-movements.ts';
import { createSignatureCheck } from '../../../src/worker/payouts/signature-check.ts';
import { createUnstored } from '../../../src/worker/payouts/unstored.ts';
import { RATE } from '../../support/batches.ts';
import { FEE_MAX } from '../../support/funded.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';

batchServiceForEach();

const AMOUNT = 200_000n;
const sql = (text: string, ...values: unknown[]) => service.admin.query(text, values);
/** A payout that was let go and signed; the copy that is there now knows it as waiting for its approval. */
async function signedAndForgotten(amount = '0.002') {
  await setSettings(ctx, {
    merchantId: service.merchantId,
    scopes: new Set(['payouts'] as const),
    change: { payoutApprovalAbove: '0' },
  });
  const id = await batches.request(amount);
  await sql(`update payouts set status = 'processing', step = 'queued', held_reason = null where id = $1`, id);
  const batch = await batches.formed();
  const signed = await batches.signed(batch);
  await batches.forgetBatches();
  await sql(`update payouts set status = 'pending', step = 'held', held_reason = 'approval' where id = $1`, id);
  return { id, batch, signed };
}
const cancel = (payoutId: string) => cancelPayout(ctx, { merchantId: service.merchantId, payoutId });
const owed = () => service.balance(`asset:receivable:merchant:${service.merchantId}:BTC`);

test('a payout that was cancelled in the copy, and has left, goes on, and its hold is taken again', async () => {
  await batches.earn(2);
  const before = await service.available();
  const { id, batch, signed } = await signedAndForgotten();
  await cancel(id);
  expect(await service.available()).toBe(before);
  expect(await restoreSignature(ctx, signed, 'seen')).toBe('written_back');
  expect(await restoreSignature(ctx, signed)).toBe('known');
  expect(await batches.row(id)).toMatchObject({ status: 'processing', step: 'batched', error: null });
  expect(await batches.held()).toBe(AMOUNT + FEE_MAX);
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
  await batches.mined(batch, signed);
  expect(await progress(ctx, batch.id)).toBe('confirmed');
  expect(await service.available()).toBe(before - AMOUNT - BigInt(signed.fee));
  expect(await batches.row(id)).toMatchObject({ status: 'completed', error: null });
  expect(await service.findings()).toEqual([]);
});

test('a payout that was cancelled in the copy, and whose outputs are spent since, is owed by its merchant', async () => {
  await batches.earn(2);
  const { id, batch, signed } = await signedAndForgotten('0.0198');
  await cancel(id);
  // everything else of the balance leaves by another payout of the copy
  await setSettings(ctx, {
    merchantId: service.merchantId,
    scopes: new Set(['payouts'] as const),
    change: { payoutApprovalAbove: null },
  });
  await batches.request('all');
  expect(await service.available()).toBe(0n);
  expect(await restoreSignature(ctx, signed, 'seen')).toBe('written_back');
  expect(await batches.row(id)).toMatchObject({ status: 'processing', step: 'batched' });
  expect(await owed()).toBe(1_980_000n + FEE_MAX);
  const [open] = await openBreakers(ctx.db);
  expect(open?.findings.join()).toContain(`${id} had failed and is paid by ${signed.txid}`);
  expect(await service.findings()).toEqual([]);
  await batches.mined(batch, signed, 6);
  await progress(ctx, batch.id);
  expect(await owed()).toBe(1_980_000n + BigInt(signed.fee));
  expect(await service.findings()).toEqual([]);
});

test('one that goes on after a cancel and can then never be mined gives its hold back a second time', async () => {
  await batches.earn(2);
  const before = await service.available();
  const { id, batch, signed } = await signedAndForgotten();
  await cancel(id);
  await restoreSignature(ctx, signed, 'seen');
  service.spend('ab'.repeat(32), batch.inputs);
  await service.mine(6);
  expect(await progress(ctx, batch.id)).toBe('failed');
  expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await service.available()).toBe(before);
  expect(await service.findings()).toEqual([]);
});

test('a payout that was cancelled in the copy, and that nobody shows, stays cancelled', async () => {
  await batches.earn(2);
  const before = await service.available();
  const { id, signed } = await signedAndForgotten();
  await cancel(id);
  expect(await restoreSignature(ctx, signed)).toBe('left');
  expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'cancelled' });
  expect(await service.available()).toBe(before);
  expect(await service.findings()).toEqual([]);
});

test('a reservation of the copy gives up the payouts and outputs that a signature needs', async () => {
  await batches.earn();
  const id = await batches.request();
  const batch = await batches.formed();
  const signed = await batches.signed(batch);
  await batches.forgetBatches();
  const reserved = await formBatch(ctx, 'BTC', RATE);
  if (reserved.outcome !== 'formed') throw new Error(reserved.outcome);
  expect(await restoreSignature(ctx, signed)).toBe('written_back');
  expect(await readBatch(ctx.db, reserved.batchId, { lock: false })).toBeNull();
  expect((await batches.row(id)).batch_id).toBe(batch.id);
  expect(await service.findings()).toEqual([]);
});

/** A signature whose batch is forgotten, and whose payout another one has paid since. */
async function paidByAnother() {
  await batches.earn(2);
  const id = await batches.request();
  const batch = await batches.formed();
  const forgotten = await batches.signed(batch);
  await batches.forgetBatches();
  const other = await batches.formed();
  await batches.mined(other, await batches.signed(other));
  await progress(ctx, other.id);
  return { id, batch, forgotten };
}

test('one that has left for a payout that another batch has paid stops payouts by name, and throws nothing', async () => {
  const { id, forgotten } = await paidByAnother();
  expect(await restoreSignature(ctx, forgotten, 'seen')).toBe('unknown_payout');
  expect((await openBreakers(ctx.db))[0]?.findings.join()).toContain(`for ${id}, which is completed here`);
});

test('one that nobody shows for a payout that another batch has paid is never sent, and its batch is dead for the signer', async () => {
  const { batch, forgotten } = await paidByAnother();
  expect(await restoreSignature(ctx, forgotten, 'starting')).toBe('waits');
  expect(await restoreSignature(ctx, forgotten)).toBe('left');
  expect(await readBatch(ctx.db, batch.id, { lock: false })).toMatchObject({
    state: 'dead',
    payouts: [],
    attempts: [],
    inputs: [],
  });
  for (const compared of ['starting', 'compared', 'seen'] as const)
    expect(await restoreSignature(ctx, forgotten, compared)).toBe('left');
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});

test('what else it would have paid waits for a person, also out of another reservation', async () => {
  await batches.earn(2);
  const ids = [await batches.request(), await batches.request()];
  const batch = await batches.formed();
  const forgotten = await batches.signed(batch);
  await batches.forgetBatches();
  await sql(`update payouts set status = 'processing', step = 'held', held_reason = 'unknown_outcome' where id = $1`, ids[0]);
  const reserved = await batches.formed();
  expect((await batches.row(ids[1] as string)).batch_id).toBe(reserved.id);
  expect(await restoreSignature(ctx, forgotten)).toBe('left');
  for (const id of ids)
    expect(await batches.row(id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome', batch_id: null });
  // the signer is asked about the reservation before its outputs are free
  expect(await readBatch(ctx.db, reserved.id, { lock: false })).toMatchObject({ state: 'reserved', payouts: [] });
  expect(await service.findings()).toEqual([]);
});

test('one that waits is asked for again by a worker that begins later, though something else was signed and stored since', async () => {
  await batches.earn(2);
  await batches.request();
  const batch = await batches.formed();
  const forgotten = await batches.signed(batch);
  await batches.forgetBatches();
  const journal: SignedTransaction[] = [forgotten];
  const signing = {
    sign: () => Promise.reject(new Error('nothing is signed')),
    signed: async ({ after }: { after: number }) => ({
      transactions: journal.filter((one) => one.sequence > after),
      more: false,
    }),
  };
  const begins = async () => {
    const check = createSignatureCheck(ctx, { signing, onTrouble: () => undefined });
    expect(await check.look(false)).toBe(true);
    return [...check.waiting('BTC')].map(([id, { txids }]) => [id, txids]);
  };
  expect(await begins()).toEqual([[batch.id, [forgotten.txid]]]);
  await batches.request();
  const later = await batches.formed();
  journal.push(await batches.signed(later));
  expect(await begins()).toEqual([[batch.id, [forgotten.txid]]]);
  expect(await restoreSignature(ctx, forgotten)).toBe('left');
  expect(await begins()).toEqual([]);
  expect(await firstWaiting(ctx.db)).toBeNull();
});

test('what waits is not written back as compared, and nothing counts as compared, where another database comes while the signer is asked', async () => {
  await batches.earn(2);
  await batches.request();
  const batch = await batches.formed();
  const forgotten = await batches.signed(batch);
  await batches.forgetBatches();
  let isReplaced = false;
  const signing = {
    sign: () => Promise.reject(new Error('nothing is signed')),
    signed: async ({ batchId }: { readonly after: number; readonly batchId?: string }) => {
      if (batchId !== undefined && isReplaced) ctx.db.identity.sessionLost();
      return { transactions: [forgotten], more: false };
    },
  };
  const telling = { onTrouble: () => undefined, onFault: () => undefined };
  const signatures = createSignatureCheck(ctx, { signing, ...telling });
  expect(await signatures.look(false)).toBe(true);
  const send: PayingPort['send'] = () => Promise.reject(new Error('nothing is sent'));
  const chains = new Map([['BTC' as const, { send } as PayingPort]]);
  const unstored = createUnstored({ ...ctx, ports: { ...ctx.ports, chains } }, 'BTC', {
    signatures,
    options: { signing, owner: 'one', ...telling },
    goesOn: () => signatures.holds(),
  });
  isReplaced = true;
  expect(await unstored.writeRest()).toBe(false);
  expect(await readBatch(ctx.db, batch.id, { lock: false })).toBeNull();
  isReplaced = false;
  expect(await signatures.look(false)).toBe(true);
  expect(await unstored.writeRest()).toBe(true);
  expect(await readBatch(ctx.db, batch.id, { lock: false })).toMatchObject({ attempts: [{ txid: forgotten.txid }] });
});

/** A signature for a payout that is not here, of a batch that is not here. */
async function ofNobodyHere(): Promise<SignedTransaction> {
  await batches.earn();
  await batches.request();
  const batch = await batches.formed();
  const signed = batches.signedOf(batch);
  const outputs = signed.request.outputs.map((one) => ({ ...one, payoutId: 'payout_x' }));
  return { ...signed, request: { ...signed.request, batchId: 'batch_x', outputs } };
}

test('one that an operator has had booked is not recorded again', async () => {
  const unknown = await ofNobodyHere();
  expect(await restoreSignature(ctx, unknown)).toBe('unknown_payout');
  // nobody is asked twice while it is open either
  expect(await restoreSignature(ctx, unknown, 'starting')).toBe('unknown_payout');
  await resolveMovement(
    ctx.db,
    { currency: 'BTC', txid: unknown.txid },
    { by: 'ann', text: 'booked', atMs: ctx.ports.clock.now() },
  );
  for (const compared of ['starting', 'compared'] as const) expect(await restoreSignature(ctx, unknown, compared)).toBe('known');
  expect(await service.findings()).toEqual([]);
});

test('a signature for a payout that is not here is named by the audit until it is booked, and payouts cannot go on', async () => {
  const unknown = await ofNobodyHere();
  expect(await restoreSignature(ctx, unknown)).toBe('unknown_payout');
  expect(await restoreSignature(ctx, unknown)).toBe('unknown_payout');
  expect(await openBreakers(ctx.db)).toMatchObject([{ trippedBy: ['INV-10'] }]);
  const finding = `BTC: the signer has signed ${unknown.txid} for payout_x, which this database does not know`;
  expect((await service.findings()).join()).toContain(finding);
  expect(await clearAfterAudit(ctx, await runAudit(ctx), 'test')).toBe(null);
});

test('a cancel waits for the comparison that follows a start of the database, and is refused when that takes long', async () => {
  await batches.earn();
  await setSettings(ctx, {
    merchantId: service.merchantId,
    scopes: new Set(['payouts'] as const),
    change: { payoutApprovalAbove: '0' },
  });
  const id = await batches.request();
  await saveChecked(ctx.db, 'BTC', 100);
  await sql(`update comparisons set checked_at = '2001-01-01'`);
  const of = { merchantId: service.merchantId, payoutId: id };
  await awaitComparison(ctx, of, 50);
  await expect(cancelPayout(ctx, of)).rejects.toMatchObject({ code: 'payout_not_cancellable' });
  const compared = awaitComparison(ctx, of);
  await saveChecked(ctx.db, 'BTC', 100);
  await compared;
  expect(await cancelPayout(ctx, of)).toMatchObject({ status: 'failed', error: 'cancelled' });
});
