// Reimbursements from the merchant's decision to the block, on a real database: what is held, which batch pays it, what a reorganisation takes at
// each step. After each the audit is green, and no unit is lost or doubled.
import { randomBytes } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { OUTSIDE } from '../../support/funded.ts';
import {
  capital,
  ctx,
  formed,
  green,
  lose,
  mined,
  owed,
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

describe('a reimbursement', () => {
  test('is held at once, waits for the final depth, and leaves as what came in less the fee; then the transaction is reimbursed', async () => {
    await capital();
    const { id } = await paid(3);
    expect([await status(id), await service.available()]).toEqual(['succeeded', PAID]);
    expect(await reimburse(id)).toEqual({ transactionId: id, status: 'succeeded' });
    expect([await service.available(), await payable(id)]).toEqual([0n, PAID]);
    const other = { merchantId: service.merchantId + 1n, transactionId: id, destination: OUTSIDE, part: null, currency: null };
    await expect(reimburseTransaction(ctx, other)).rejects.toMatchObject({ code: 'transaction_not_found' });
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

  test('of a payment without confirmations is taken, held when that is booked, and leaves when it is final', async () => {
    await capital();
    const { transactionId: id } = await service.create(500_00n);
    await cancelTransaction(ctx, { merchantId: service.merchantId, transactionId: id });
    await service.pay(id, PAID);
    await service.judge();
    expect(await reimburse(id)).toEqual({ transactionId: id, status: 'review' });
    expect([await payable(id), (await refundOf(id)).status]).toEqual([0n, 'pending']);
    await green();
    await service.mine(3);
    await service.judge();
    expect(await payable(id)).toBe(PAID);
    await green();
    await service.mine(3);
    await service.judge();
    const batch = await formed();
    await mined(batch, await signed(batch));
    await progress(ctx, batch.id);
    await service.judge();
    expect(await status(id)).toBe('reimbursed');
    await green();
  });

  test('of one that is booked and one that is not yet waits for both, and of an unconfirmed one ends after three days', async () => {
    await capital();
    const { transactionId: id } = await service.create(500_00n);
    await service.wait(16 * 60_000 + 1_000);
    await service.judge();
    await service.pay(id, 20_000n);
    await service.pay(id, PAID);
    await service.mine();
    await service.judge();
    expect(await service.balance(`suspense:${id}:BTC`)).toBe(20_000n);
    await reimburse(id);
    expect(await payable(id)).toBe(0n);
    await green();
    await service.mine();
    await service.judge();
    expect([await payable(id), await service.balance(`suspense:${id}:BTC`)]).toEqual([PAID + 20_000n, 0n]);
    await service.mine(4);
    await service.judge();
    const batch = await formed();
    await mined(batch, await signed(batch));
    await progress(ctx, batch.id);
    await service.judge();
    expect(await status(id)).toBe('reimbursed');
    await green();

    const { transactionId: pinned } = await service.create(500_00n);
    await cancelTransaction(ctx, { merchantId: service.merchantId, transactionId: pinned });
    await service.pay(pinned, 20_000n);
    await service.judge();
    await reimburse(pinned);
    await service.wait(72 * 3_600_000 - 1_000);
    await service.judge();
    expect(await refundOf(pinned)).toMatchObject({ status: 'pending' });
    await service.wait(1_000);
    await service.judge();
    expect(await refundOf(pinned)).toMatchObject({ status: 'failed' });
    await green();
  });

  test('shares no transaction with payouts, and none waits for the other kind', async () => {
    await capital();
    const { id } = await paid(6, 700_000n);
    const { id: other } = await paid(6);
    await requestPayout(ctx, { merchantId: service.merchantId, amount: '0.002', destination: OUTSIDE });
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

describe('a decision that waited for another on the same transaction', () => {
  const WAIT = { timeout: 30_000, interval: 20 };
  /** What both see when they begin; both wait for the row. */
  async function together(id: string, ...decisions: readonly (() => Promise<unknown>)[]): Promise<ReadonlySet<unknown>> {
    const blocker = await service.admin.connect();
    try {
      await blocker.query('begin');
      await blocker.query('select from transactions where id = $1 for no key update', [id]);
      const answers = decisions.map((decision) =>
        decision().then(
          () => 'done',
          (error: { code: unknown }) => error.code,
        ),
      );
      await vi.waitFor(async () => {
        const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
        expect((await service.admin.query(waiting)).rows[0].n).toBe(decisions.length);
      }, WAIT);
      await blocker.query('commit');
      return new Set(await Promise.all(answers));
    } finally {
      blocker.release();
    }
  }

  test('sees the reimbursement that was taken meanwhile', async () => {
    await capital();
    const { transactionId: id } = await service.create(500_00n);
    await service.wait(17 * 60_000);
    await service.judge();
    await service.pay(id, PAID);
    await service.mine();
    await service.judge();
    expect(
      await together(
        id,
        () => reimburse(id),
        () => reimburse(id),
      ),
    ).toEqual(new Set(['done', 'not_resolvable']));
    expect(await status(id)).toBe('review');
    await green();
  });
});

describe('a reorganisation that drops the payments', () => {
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

  test('once it is signed is owed by the merchant, because the customer gets it; a payment that comes back settles that', async () => {
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

  test('once it is signed with those payments costs nobody anything: it can never be mined', async () => {
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
