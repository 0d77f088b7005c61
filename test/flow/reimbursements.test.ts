// Reimbursements from the merchant's decision to the block, on a real database: what is held, which batch pays it, what a reorganisation takes at
// each step. After each the audit is green, and no unit is lost or doubled.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import type { Context } from '../../src/flow/context.ts';
import { formBatch, priced, signingRequest } from '../../src/flow/payout-batches.ts';
import { requestPayout } from '../../src/flow/payout-life.ts';
import { progress, storeSigned } from '../../src/flow/payout-progress.ts';
import { type RefundShown, readRefund, reimburseTransaction } from '../../src/flow/reimbursements.ts';
import { resolveTransaction } from '../../src/flow/transaction-life.ts';
import { type Batch, leaseBatch, readBatch } from '../../src/store/payouts/batch-rows.ts';
import { OUTSIDE, tellFee } from '../support/funded.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../support/service-on-database.ts';

const RATE = 1_000n;
const PAID = 500_000n;
let service: ServiceOnDatabase;
let ctx: Context;
let signatures = 0;

beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  signatures = 0;
  await tellFee(ctx);
});
afterEach(() => service.drop());

const green = async (): Promise<void> => expect(await service.findings()).toEqual([]);
const status = async (id: string): Promise<string> => (await service.row(id)).status as unknown as string;
const payable = (id: string) => service.balance(`refund_payable:${id}:BTC`);
const owed = () => service.balance(`asset:receivable:merchant:${service.merchantId}:BTC`);
const refundOf = async (id: string): Promise<RefundShown> => (await readRefund(ctx, id)) as RefundShown;
const reimburse = (transactionId: string, more: { part?: 'excess' } = {}) =>
  reimburseTransaction(ctx, {
    ...{ merchantId: service.merchantId, transactionId, destination: OUTSIDE, part: null, currency: null },
    ...more,
  });

/** A coin of another merchant, large and final: batches spend it first. */
async function capital(): Promise<void> {
  const other = await service.openShop('other');
  const { transactionId } = await service.create(50_000_00n, 'BTC', other);
  await service.pay(transactionId, 50_000_000n);
  await service.mine(6);
  await service.judge();
}
/** A transaction that is paid, with so many confirmations. */
async function paid(confirmations: number, amount = PAID): Promise<{ id: string; sent: Sent }> {
  const { transactionId: id } = await service.create(500_00n);
  const sent = await service.pay(id, amount);
  await service.mine(confirmations);
  await service.judge();
  return { id, sent };
}

async function formed(): Promise<Batch> {
  const outcome = await formBatch(ctx, 'BTC', RATE);
  if (outcome.outcome !== 'formed') throw new Error(outcome.outcome);
  const nowMs = ctx.ports.clock.now();
  await leaseBatch(ctx.db, { owner: 'test', currency: 'BTC', nowMs, untilMs: nowMs + 1_000, not: [] });
  return (await readBatch(ctx.db, outcome.batchId, { lock: false })) as Batch;
}
/** What the signer would answer, stored. */
async function signed(batch: Batch, number = 1, rate = RATE): Promise<SignedTransaction> {
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
async function mined(batch: Batch, { txid, request: { change, outputs } }: SignedTransaction): Promise<void> {
  const { rows } = await service.admin.query(
    `select encode(script, 'hex') as script from own_addresses where address_index = $1`,
    [batch.changeIndex],
  );
  const back = change === null ? [] : [{ vout: outputs.length, script: rows[0].script, amountMinor: BigInt(change.amount) }];
  service.spend(txid, batch.inputs, back);
  await service.mine();
}
/** The coins of a transaction leave chain and mempool for good: ten minutes later they count as lost. */
async function lose(blocks: number): Promise<void> {
  await service.vanish('BTC', blocks);
  await service.wait(11 * 60_000);
  await service.judge();
}
async function signedRefund(): Promise<{ id: string; sent: Sent; batch: Batch; transaction: SignedTransaction }> {
  await capital();
  const { id, sent } = await paid(6);
  await reimburse(id);
  const batch = await formed();
  return { id, sent, batch, transaction: await signed(batch) };
}

describe('a reimbursement', () => {
  test('is held at once, waits for the final depth, and leaves as what came in less the fee; then the transaction is reimbursed', async () => {
    await capital();
    const { id } = await paid(3);
    expect([await status(id), await service.available()]).toEqual(['succeeded', PAID]);
    expect(await reimburse(id)).toEqual({ transactionId: id, status: 'succeeded' });
    expect([await service.available(), await payable(id)]).toEqual([0n, PAID]);
    await expect(reimburse(id)).rejects.toMatchObject({ code: 'not_resolvable' });
    await green();
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
    await service.mine(3);
    await service.judge();
    const batch = await formed();
    const transaction = await signed(batch);
    const fee = BigInt(transaction.fee);
    expect(transaction.request.outputs).toMatchObject([{ amount: (PAID - fee).toString(), total: PAID.toString() }]);
    expect(await refundOf(id)).toMatchObject({ status: 'pending', amount: PAID - fee, fee, txid: transaction.txid });
    await green();
    await mined(batch, transaction);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    expect(await refundOf(id)).toMatchObject({ status: 'pending' });
    await service.judge();
    expect([await status(id), await payable(id), await service.available()]).toEqual(['reimbursed', 0n, 0n]);
    expect(await refundOf(id)).toMatchObject({ status: 'completed', amount: PAID - fee, fee, destination: OUTSIDE });
    expect((await service.path(id)).at(-1)).toBe('reimbursed');
    await green();
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    await green();
  });

  test('shares no transaction with payouts, and none waits for the other kind', async () => {
    await capital();
    const { id } = await paid(6, 700_000n);
    const { id: other } = await paid(6);
    await requestPayout(ctx, { merchantId: service.merchantId, method: 'bitcoin', amount: '0.002', destination: OUTSIDE });
    await reimburse(id, { part: 'excess' });
    service.pass(1);
    await reimburse(other);
    const [first, second] = [await formed(), await formed()];
    expect(first.payouts.map(({ reimburses }) => reimburses)).toEqual([null]);
    expect(second.payouts.map(({ reimburses }) => reimburses)).toEqual([id, other]);
    expect(second.payouts.map(({ amount }) => amount)).toEqual([200_000n, PAID]);
    const transaction = await signed(second);
    // replaced at a higher fee: change stays, the customers get less
    const dear = await signed(second, 2, 4_000n);
    expect(dear.request.change).toEqual(transaction.request.change);
    await mined(second, transaction);
    await progress(ctx, second.id);
    await service.judge();
    expect([await status(id), await status(other)]).toEqual(['succeeded', 'reimbursed']);
    await green();
    // a reorganisation puts the other one in its place: that is what they got
    await service.vanish('BTC', 1);
    expect(await progress(ctx, second.id)).toBe('reorged');
    await mined(second, dear);
    expect(await progress(ctx, second.id)).toBe('moved');
    expect((await refundOf(other)).fee * 2n).toBe(BigInt(dear.fee));
    await green();
  });

  test('of which a stranger spent the inputs fails, and everything is where it was', async () => {
    const { id, batch } = await signedRefund();
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('failed');
    await service.judge();
    expect([await status(id), await service.available(), await payable(id)]).toEqual(['succeeded', PAID, 0n]);
    expect(await refundOf(id)).toMatchObject({ status: 'failed' });
    await service.admin.query(`update breakers set cleared_at = now()`);
    await green();
    await reimburse(id);
    expect(await payable(id)).toBe(PAID);
  });

  test('that was confirmed and displaced for good lies in suspense, and can be sent again', async () => {
    const { id, batch, transaction } = await signedRefund();
    await mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.judge();
    await service.vanish('BTC', 1);
    await progress(ctx, batch.id);
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('displaced');
    await service.judge();
    expect([await status(id), await service.balance(`suspense:${id}:BTC`)]).toEqual(['reimbursed', PAID]);
    expect(await refundOf(id)).toMatchObject({ status: 'failed' });
    await green();
    await reimburse(id, { part: 'excess' });
    expect(await payable(id)).toBe(PAID);
    await green();
  });
});

describe('a reorganisation that drops the coins', () => {
  test('while it waits ends it, and resolve is open again', async () => {
    const { id } = await paid(3);
    await reimburse(id);
    await lose(4);
    expect([await status(id), await payable(id), await owed()]).toEqual(['review', 0n, 0n]);
    expect(await refundOf(id)).toMatchObject({ status: 'failed', txid: null });
    await green();
    await resolveTransaction(ctx, { merchantId: null, transactionId: id, action: 'decline', part: null });
    expect(await status(id)).toBe('declined');
  });

  test('once it is signed is owed by the merchant, because the customer gets it; a coin that comes back settles that', async () => {
    const { id, sent, batch, transaction } = await signedRefund();
    await lose(6);
    expect([await status(id), await owed(), await payable(id)]).toEqual(['review', PAID, PAID]);
    await green();
    await mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.judge();
    expect([await status(id), await owed(), await payable(id)]).toEqual(['reimbursed', PAID, 0n]);
    await green();
    const again = await service.pay(id, PAID, { inputs: sent.facts.inputs });
    expect(again.facts.outputs).toHaveLength(1);
    await service.mine(6);
    await service.judge();
    expect([await status(id), await owed()]).toEqual(['reimbursed', 0n]);
    await green();
  });

  test('once it is signed with those coins costs nobody anything: it can never be mined', async () => {
    const { id, sent } = await paid(6);
    await reimburse(id);
    const batch = await formed();
    expect(batch.inputs).toMatchObject([{ txid: sent.facts.txid, amount: PAID }]);
    await signed(batch);
    await service.vanish('BTC', 6);
    const { transactionId: rival } = await service.create(1_00n, 'BTC', await service.openShop('rival'));
    await service.pay(rival, 10_000n, { inputs: sent.facts.inputs });
    await service.mine();
    await service.judge();
    expect([await status(id), await owed(), await payable(id)]).toEqual(['review', PAID, PAID]);
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('failed');
    await service.judge();
    expect([await status(id), await owed(), await payable(id)]).toEqual(['review', 0n, 0n]);
    await green();
  });

  test('once it is confirmed is owed by the merchant', async () => {
    const { id, batch, transaction } = await signedRefund();
    await mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.judge();
    await service.vanish('BTC', 7);
    await mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.wait(11 * 60_000);
    await service.judge();
    expect([await status(id), await owed()]).toEqual(['reimbursed', PAID]);
    await green();
  });
});

describe('the audit is red', () => {
  const red = async (sql: string): Promise<string> => {
    await service.admin.query(sql);
    return (await service.findings()).join('\n');
  };
  test.each([
    ['INV-5', `update payouts set amount = amount + 1`, /INV-5: refund_payable.* open reimbursements need 500001/],
    ['BOOK-13', `update payments set in_refund = in_refund - 1 where in_refund > 0`, /BOOK-13: refund_payable/],
    ['INV-12', `update ledger.entry set key = key || 'x' where key like 'po:refund%:hold'`, /INV-12: refund_.* has 0 hold/],
    ['OUT-1', `update payouts set amount = amount + 1`, /OUT-1: BTC/],
    ['OUT-2', `update outgoing_shares set fee = fee + 1`, /OUT-2: transaction/],
    [
      'INV-11',
      `insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ('batch_x', 'BTC', 'signed', 1, now());
      insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at)
        values ('batch_x', 1, 'BTC', 'x', '', 1, 1, 1, 9, now());
      insert into outgoing_shares select a.id, s.payout_id, 0, 1 from outgoing_attempts a, outgoing_shares s where a.batch_id = 'batch_x'`,
      /INV-11: refund_.* is in 2 batches/,
    ],
  ])('%s when a row of a reimbursement says something else', async (_, sql, finding) => {
    await signedRefund();
    await green();
    expect(await red(`set session_replication_role = replica; ${sql}; set session_replication_role = default`)).toMatch(finding);
  });
});
