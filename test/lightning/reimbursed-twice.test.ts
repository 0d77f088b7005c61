// A transaction that was paid over Lightning is reimbursed once, whatever whoever holds the worker and the database says of the first time: the
// signer's journal and the node know better.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import type { SimulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openSimulatedPayouts } from '../support/lightning-payouts.ts';

const clock = { nowMs: Date.now(), now: () => clock.nowMs };
let engine: SimulatedEngine;
let at: LightningPayouts;
let close: () => Promise<void>;
beforeEach(async () => {
  clock.nowMs = Date.now();
  ({ engine, at, close } = await openSimulatedPayouts(clock));
});
afterEach(() => close());

const invoice = (behaviour: 'pay' | 'fail' = 'pay') =>
  engine.node().outgoing.invoice({ amountMsat: 0n, expirySeconds: 3_600, behaviour });
const arrived = async (hash: string): Promise<bigint> => BigInt(await engine.arrived(hash));
async function paid(): Promise<string> {
  await at.rate('100000.00');
  const { transactionId } = await at.create();
  const hash = await at.hashOf(transactionId);
  engine.node().pay(hash, engine.node().find(hash)!.valueMsat, 1);
  await at.work();
  return transactionId;
}
async function looks(times = 3): Promise<void> {
  for (let n = 0; n < times; n++) {
    clock.nowMs += 16_000;
    await at.look();
    await at.judge();
  }
}
async function reimbursements(transactionId: string): Promise<Record<string, string>[]> {
  const text = 'select id, status, step, held_reason from payouts where reimburses = $1 order by created_at, id';
  return (await at.admin.query(text, [transactionId])).rows;
}
/** As the database's owner a thief lets everything be as it was before a reimbursement. */
async function forge(transactionId: string, payoutId: string): Promise<void> {
  const session = await at.admin.connect();
  try {
    await session.query('set session_replication_role = replica');
    await session.query(
      `update payments set sent_back = 0, in_refund = 0, in_available = credited, in_suspense = suspended where transaction_id = $1`,
      [transactionId],
    );
    await session.query(`update transactions set status = 'succeeded' where id = $1`, [transactionId]);
    await session.query(`update payouts set status = 'failed', error = 'no_route', noted = true where id = $1`, [payoutId]);
    await session.query(`update lightning_payments set state = 'failed', preimage = null, fee_msat = null where payout_id = $1`, [
      payoutId,
    ]);
    await session.query(`delete from due_marks where transaction_id = $1`, [transactionId]);
  } finally {
    await session.query('set session_replication_role = origin');
    session.release();
  }
}

test('one that the database denies is not paid again, until an operator says so', async () => {
  const id = await paid();
  const first = invoice();
  await at.reimburse(id, first.request);
  await looks();
  expect(await arrived(first.hash)).toBeGreaterThan(0n);
  await forge(id, (await reimbursements(id))[0]!.id!);
  // the merchant's other balance covers it: what opened this service is his
  const second = invoice();
  await at.reimburse(id, second.request);
  await looks();
  expect(await arrived(second.hash)).toBe(0n);
  const [, held] = await reimbursements(id);
  expect(held).toMatchObject({ status: 'pending', held_reason: 'approval' });
  expect(at.troubles.join()).toMatch(/rule reimbursed/);
  // asked for directly
  const { rows } = await at.admin.query('select lease_epoch::text as epoch from lightning_payments where payout_id = $1', [
    held!.id,
  ]);
  await expect(at.paying.authorize({ payoutId: held!.id!, leaseEpoch: rows[0].epoch })).rejects.toMatchObject({
    fault: 'refused',
  });
  await approvePayout(at.ctx, { payoutId: held!.id!, by: 'ann' });
  await looks();
  expect(await arrived(second.hash)).toBeGreaterThan(0n);
});

test('one of which the database has nothing any more is not paid again: the journal has its transaction', async () => {
  const id = await paid();
  await at.reimburse(id, invoice().request);
  await looks();
  const [first] = await reimbursements(id);
  await forge(id, first!.id!);
  // nothing names its transaction any more
  const session = await at.admin.connect();
  await session.query('set session_replication_role = replica');
  await session.query('delete from lightning_payments where payout_id = $1', [first!.id]);
  await session.query('delete from payouts where id = $1', [first!.id]);
  await session.query('set session_replication_role = origin');
  session.release();
  const second = invoice();
  await at.reimburse(id, second.request);
  await looks();
  expect(await arrived(second.hash)).toBe(0n);
  expect(at.troubles.join()).toMatch(/rule reimbursed/);
});

test('one that failed is followed by another, and never paid after it', async () => {
  const id = await paid();
  const first = invoice('fail');
  await at.reimburse(id, first.request);
  await looks();
  const second = invoice();
  await at.reimburse(id, second.request);
  await looks();
  expect(await arrived(second.hash)).toBeGreaterThan(0n);
  const [failed] = await reimbursements(id);
  // as if it were still on its way: the node would try it again
  const session = await at.admin.connect();
  await session.query('set session_replication_role = replica');
  await session.query(`update payouts set status = 'processing', step = 'batched', error = null where id = $1`, [failed!.id]);
  await session.query(
    `delete from ledger.posting where entry_id in (select id from ledger.entry where payout_id = $1 and key not like '%:hold')`,
    [failed!.id],
  );
  await session.query(`delete from ledger.entry where payout_id = $1 and key not like '%:hold'`, [failed!.id]);
  await session.query(`update lightning_payments set state = 'sent', lease_epoch = 77, lease_until = $2 where payout_id = $1`, [
    failed!.id,
    new Date(clock.nowMs + 60_000),
  ]);
  await session.query('set session_replication_role = origin');
  session.release();
  await expect(at.paying.send({ payoutId: failed!.id!, leaseEpoch: '77' })).rejects.toMatchObject({
    fault: 'refused',
    message: expect.stringMatching(/^rule reimbursed/),
  });
});
