// A service on a database whose merchant sends payments back: what the tests of reimbursements share.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect } from 'vitest';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import type { Context } from '../../../src/flow/context.ts';
import { formBatch, priced, signingRequest } from '../../../src/flow/payouts/batches.ts';
import { storeSigned } from '../../../src/flow/payouts/progress.ts';
import { type RefundShown, readRefund, reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { type Batch, leaseBatch, readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../../support/service-on-database.ts';

export const RATE = 1_000n;
export const PAID = 500_000n;
export let service: ServiceOnDatabase;
export let ctx: Context;
let signatures = 0;

/** Opens it before each test of the file, and drops it afterwards. */
export function refundServiceForEach(): void {
  beforeEach(async () => {
    service = await openServiceOnDatabase();
    ({ ctx } = service);
    signatures = 0;
    await tellFee(ctx);
  });
  afterEach(() => service.drop());
}

export const green = async (): Promise<void> => expect(await service.findings()).toEqual([]);
export const status = async (id: string): Promise<string> => (await service.row(id)).status as unknown as string;
export const payable = (id: string) => service.balance(`refund_payable:${id}:BTC`);
export const owed = () => service.balance(`asset:receivable:merchant:${service.merchantId}:BTC`);
export const refundOf = async (id: string): Promise<RefundShown> => (await readRefund(ctx, id)) as RefundShown;
export const reimburse = (transactionId: string, more: { part?: 'excess' } = {}) =>
  reimburseTransaction(ctx, {
    ...{ merchantId: service.merchantId, transactionId, destination: OUTSIDE, part: null, currency: null },
    ...more,
  });

/** A payment to another merchant, large and final: batches spend it first. */
export async function capital(): Promise<void> {
  const other = await service.openShop('other');
  const { transactionId } = await service.create(50_000_00n, 'BTC', other);
  await service.pay(transactionId, 50_000_000n);
  await service.mine(6);
  await service.judge();
}
/** A transaction that is paid, with so many confirmations. */
export async function paid(confirmations: number, amount = PAID): Promise<{ id: string; sent: Sent }> {
  const { transactionId: id } = await service.create(500_00n);
  const sent = await service.pay(id, amount);
  await service.mine(confirmations);
  await service.judge();
  return { id, sent };
}

export async function formed(): Promise<Batch> {
  const outcome = await formBatch(ctx, 'BTC', RATE);
  if (outcome.outcome !== 'formed') throw new Error(outcome.outcome);
  const nowMs = ctx.ports.clock.now();
  await leaseBatch(ctx.db, { owner: 'test', currency: 'BTC', nowMs, untilMs: nowMs + 1_000, not: [] });
  return (await readBatch(ctx.db, outcome.batchId, { lock: false })) as Batch;
}
/** What the signer would answer, stored. */
export async function signed(batch: Batch, number = 1, rate = RATE): Promise<SignedTransaction> {
  const selection = priced(batch, rate);
  if (selection === null) throw new Error('it cannot be paid at this rate');
  signatures += 1;
  const transaction = {
    sequence: signatures,
    request: signingRequest(batch, number, selection),
    txid: randomBytes(32).toString('hex'),
    raw: '00',
    fee: selection.fee.toString(),
    vbytes: selection.vbytes,
    signedAtMs: ctx.ports.clock.now(),
  };
  expect(await storeSigned(ctx, transaction, { epoch: batch.leaseEpoch, feeRate: rate })).toBe(true);
  return transaction;
}
export async function mined(batch: Batch, { txid, request: { change, outputs } }: SignedTransaction): Promise<void> {
  const { rows } = await service.admin.query(
    `select encode(script, 'hex') as script from own_addresses where address_index = $1`,
    [batch.changeIndex],
  );
  const back = change === null ? [] : [{ vout: outputs.length, script: rows[0].script, amountMinor: BigInt(change.amount) }];
  service.spend(txid, batch.inputs, back);
  await service.mine();
}
/** The payments of a transaction leave chain and mempool for good: ten minutes later they count as lost. */
export async function lose(blocks: number): Promise<void> {
  await service.vanish('BTC', blocks);
  await service.wait(11 * 60_000);
  await service.judge();
}
export async function signedRefund(): Promise<{ id: string; sent: Sent; batch: Batch; transaction: SignedTransaction }> {
  await capital();
  const { id, sent } = await paid(6);
  await reimburse(id);
  const batch = await formed();
  return { id, sent, batch, transaction: await signed(batch) };
}
