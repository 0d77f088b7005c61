// A batch of payouts against what the chain shows of it: signed, replaced, confirmed, reorganised, displaced, restored. After each the audit is
// green, and no unit is lost or doubled.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import type { Context } from '../../../src/flow/context.ts';
import { restoreSignature } from '../../../src/flow/payouts/after-restore/restored-signatures.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { progress, storeSigned } from '../../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { batchesOf, RATE } from '../../support/batches.ts';
import { FEE_MAX, owe, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

type Batches = ReturnType<typeof batchesOf>;

const AMOUNT = 200_000n;
let service: ServiceOnDatabase;
let ctx: Context;
let earn: Batches['earn'];
let request: Batches['request'];
let formed: Batches['formed'];
let leased: Batches['leased'];
let signedOf: Batches['signedOf'];
let signed: Batches['signed'];
let mined: Batches['mined'];
let row: Batches['row'];
let held: Batches['held'];
let forgetBatches: Batches['forgetBatches'];

beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  ({ earn, request, formed, leased, signedOf, signed, mined, row, held, forgetBatches } = batchesOf(service));
  await tellFee(ctx);
});
afterEach(() => service.drop());

const told = async (id: string): Promise<string[]> =>
  (await service.admin.query('select type from events where object_id = $1 order by sequence', [id])).rows.map(
    ({ type }) => type,
  );
describe('a batch', () => {
  test('is confirmed by the first block and final at depth; the merchant pays the amount and its share of the fee', async () => {
    await earn();
    const before = await service.available();
    const ids = [await request(), await request()];
    const batch = await formed();
    const transaction = await signed(batch);
    expect(await service.findings()).toEqual([]);
    await mined(batch, transaction);
    // a worker has it in hand, and has not booked it yet: no reason to stop payouts
    await service.admin.query('update outgoing_batches set due_at = null');
    expect(await service.findings()).toEqual([]);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    expect(await progress(ctx, batch.id)).toBe('waiting');
    const fees = await Promise.all(ids.map(async (id) => BigInt((await row(id)).fee)));
    expect(fees[0]! + fees[1]!).toBe(BigInt(transaction.fee));
    expect(await service.available()).toBe(before - 2n * AMOUNT - BigInt(transaction.fee));
    expect(await held()).toBe(0n);
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    for (const id of ids) expect(await told(id)).toEqual(['payout.processing', 'payout.completed']);
    expect(await service.findings()).toEqual([]);
  });

  test('whose lease another worker took stores nothing, and one signature is stored once', async () => {
    await earn();
    await request();
    const old = await formed();
    const batch = await leased(old.id);
    const transaction = signedOf(batch, 1, RATE);
    expect(await storeSigned(ctx, transaction, { epoch: old.leaseEpoch, feeRate: RATE })).toBe(false);
    expect(await storeSigned(ctx, transaction, { epoch: batch.leaseEpoch, feeRate: RATE })).toBe(true);
    expect(await storeSigned(ctx, transaction, { epoch: batch.leaseEpoch, feeRate: RATE })).toBe(false);
    expect(await service.findings()).toEqual([]);
  });

  test('that was replaced books the difference only, and gives it back where the cheaper one is mined', async () => {
    await earn();
    const before = await service.available();
    const id = await request();
    const batch = await formed();
    const cheap = await signed(batch);
    const dear = await signed(batch, 2, 5_000n);
    expect(await service.balance('asset:chain:BTC:outbound')).toBe(AMOUNT + BigInt(dear.fee));
    await mined(batch, cheap);
    await progress(ctx, batch.id);
    expect(await service.balance('asset:chain:BTC:outbound')).toBe(0n);
    expect(await service.available()).toBe(before - AMOUNT - BigInt(cheap.fee));
    expect((await row(id)).status).toBe('completed');
    expect(await service.findings()).toEqual([]);
  });

  test('that a reorganisation undid keeps its status; when another of its transactions is final the difference is the service’s', async () => {
    await earn();
    const id = await request();
    const batch = await formed();
    const cheap = await signed(batch);
    const dear = await signed(batch, 2, 5_000n);
    await mined(batch, cheap);
    await progress(ctx, batch.id);
    const paid = await service.available();
    await service.vanish('BTC', 1);
    expect(await progress(ctx, batch.id)).toBe('reorged');
    expect(await progress(ctx, batch.id)).toBe('waiting');
    expect(await told(id)).toEqual(['payout.processing', 'payout.completed', 'payout.reorged']);
    await mined(batch, dear);
    expect(await progress(ctx, batch.id)).toBe('moved');
    expect(await service.findings()).toEqual([]);
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    expect(await service.available()).toBe(paid);
    expect(await service.balance('expense:network_fee:BTC')).toBe(BigInt(dear.fee) - BigInt(cheap.fee));
    expect((await row(id)).status).toBe('completed');
    expect(await service.findings()).toEqual([]);
  });

  test('of which a node said wrongly that a block has one of its transactions is paid by the one that has', async () => {
    await earn();
    const id = await request();
    const batch = await formed();
    const wrong = await signed(batch);
    const right = await signed(batch, 2, 5_000n);
    await mined(batch, wrong);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    await mined(batch, right);
    expect(await progress(ctx, batch.id)).toBe('moved');
    const { rows } = await service.admin.query('select txid, height from outgoing_attempts where height is not null');
    expect(rows.map(({ txid }) => txid)).toEqual([right.txid]);
    expect(await service.findings()).toEqual([]);
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    expect((await row(id)).status).toBe('completed');
    expect(await service.findings()).toEqual([]);
    // a stranger's shows that the second was wrong too
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('displaced');
    expect(await service.findings()).toEqual([]);
  });

  test('of which a stranger spent the inputs fails at final depth and not before; what is lost is the service’s', async () => {
    await earn();
    const before = await service.available();
    const id = await request();
    const batch = await formed();
    await signed(batch);
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('waiting');
    expect((await row(id)).status).toBe('processing');
    expect(await openBreakers(ctx.db)).toMatchObject([{ trippedBy: ['INV-10'] }]);
    // outputs that nobody here has spent are gone: the audit says so at once
    await service.admin.query('update outgoing_batches set due_at = null');
    expect((await service.findings()).join()).toContain('INV-7');
    await service.mine(1);
    expect(await progress(ctx, batch.id)).toBe('failed');
    expect(await row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    expect(await service.available()).toBe(before);
    expect(await held()).toBe(0n);
    expect(await service.balance('expense:reorg_loss:BTC')).toBe(1_000_000n);
    expect(await service.findings()).toEqual([]);
  });

  test('of which strangers spent the inputs one after the other loses each when that is final, and keeps what comes back', async () => {
    await earn(3);
    await request('0.025');
    const batch = await formed();
    const [first, second, third] = batch.inputs.map((input) => [input]);
    await signed(batch);
    const lost = () => service.balance('expense:reorg_loss:BTC');
    service.spend(randomBytes(32).toString('hex'), first!);
    await service.mine(3);
    service.spend(randomBytes(32).toString('hex'), second!);
    await service.mine(2);
    service.spend(randomBytes(32).toString('hex'), third!);
    await service.mine(1);
    expect(await progress(ctx, batch.id)).toBe('failed');
    expect(await lost()).toBe(1_000_000n);
    expect(await progress(ctx, batch.id)).toBe('unsettled');
    await service.vanish('BTC', 1);
    await service.mine(4);
    expect(await progress(ctx, batch.id)).toBe('waiting');
    expect(await lost()).toBe(2_000_000n);
    await service.admin.query('update outgoing_batches set due_at = null');
    expect(await service.findings()).toEqual([]);
    await clearAfterAudit(ctx, await runAudit(ctx), 'test');
    await request('0.005');
    expect((await formed()).inputs).toMatchObject(third!.map(({ txid, vout }) => ({ txid, vout })));
  });

  test('that is dead gives back the outputs that nothing has spent: the next batch spends them', async () => {
    await earn(2);
    await request('0.015');
    const batch = await formed();
    expect(batch.inputs).toHaveLength(2);
    await signed(batch);
    const [taken, other] = batch.inputs;
    service.spend(randomBytes(32).toString('hex'), [taken!]);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('failed');
    expect(await service.findings()).toEqual([]);
    await clearAfterAudit(ctx, await runAudit(ctx), 'test');
    const id = await request();
    const next = await formed();
    expect(next.inputs).toMatchObject([{ txid: other!.txid, vout: other!.vout }]);
    await mined(next, await signed(next), 6);
    await progress(ctx, next.id);
    expect((await row(id)).status).toBe('completed');
    expect(await progress(ctx, batch.id)).not.toBe('failed');
    expect(await service.findings()).toEqual([]);
  });

  test('that was completed and displaced for good is failed, and the merchant has its cost back, what is owed first', async () => {
    await earn();
    const before = await service.available();
    const id = await request();
    const batch = await formed();
    await mined(batch, await signed(batch));
    await progress(ctx, batch.id);
    await service.vanish('BTC', 1);
    await progress(ctx, batch.id);
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('displaced');
    expect(await row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    expect(await service.available()).toBe(before);
    expect(await told(id)).toEqual(['payout.processing', 'payout.completed', 'payout.reorged', 'payout.failed']);
    expect(await service.findings()).toEqual([]);
  });

  test('is not formed for a merchant who owes something, whatever it is in', async () => {
    await earn();
    await request();
    await owe(ctx, service.merchantId, 5n);
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
    await owe(ctx, service.merchantId, -5n);
    expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  });

  test('waits for outputs at final depth, and for a fee that is covered by what is held', async () => {
    const { transactionId } = await service.create(1_000_00n);
    await service.pay(transactionId, 1_000_000n);
    await service.mine(3);
    await service.judge();
    await request();
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'no_liquidity' });
    await service.mine(3);
    // 110 or 141 virtual bytes at 40 satoshi each are more than the 4,000 that are held
    expect(await formBatch(ctx, 'BTC', 40_000n)).toEqual({ outcome: 'fee_too_high' });
    await service.wait(31_000);
    await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
    expect((await formBatch(ctx, 'BTC', 28_000n)).outcome).toBe('formed');
    expect(FEE_MAX).toBe(4_000n);
  });
});

describe('a database that was restored', () => {
  test('gets its signatures back as batches, and pays nothing twice', async () => {
    await earn(2);
    const id = await request();
    const before = await service.available();
    const batch = await formed();
    const transaction = await signed(batch);
    // the copy was made after the request: everything later is gone
    await forgetBatches();
    expect(await restoreSignature(ctx, transaction)).toBe('written_back');
    expect(await restoreSignature(ctx, transaction)).toBe('known');
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
    expect(await service.findings()).toEqual([]);
    const again = await leased(batch.id);
    await mined(again, transaction);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    expect(await row(id)).toMatchObject({ status: 'completed', fee: transaction.fee });
    expect(await service.available()).toBe(before + FEE_MAX - BigInt(transaction.fee));
    expect(await service.findings()).toEqual([]);
  });

  test('that never knew the payout of a signature stops all payouts', async () => {
    await earn();
    await request();
    const batch = await formed();
    const foreign = signedOf(batch, 1, RATE);
    const unknown = {
      ...foreign,
      request: { ...foreign.request, outputs: foreign.request.outputs.map((one) => ({ ...one, payoutId: 'payout_x' })) },
    };
    expect(await restoreSignature(ctx, unknown)).toBe('unknown_payout');
    expect(await openBreakers(ctx.db)).toMatchObject([{ trippedBy: ['INV-10'] }]);
  });
});
