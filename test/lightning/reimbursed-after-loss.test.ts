// A payment over Lightning that database and signer have forgotten was booked as lost: it may have sent back what a transaction was paid, to an invoice that
// nobody here knows, and a new invoice is paid again.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { clearBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { waitingForOperator } from '../../src/store/payouts/waiting-for-operator.ts';
import {
  at,
  clock,
  close,
  code,
  engine,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  sendByHand,
  toldAfterAMinute as told,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const invoice = () => outgoing().invoice({ amountMsat: 0n, expirySeconds: 36_000, behaviour: 'pay' });
async function paid(usdMinor = 10_00n): Promise<string> {
  const { transactionId } = await at.create(usdMinor);
  const received = await at.hashOf(transactionId);
  engine.node().pay(received, engine.node().find(received)!.valueMsat, 1);
  await at.work();
  return transactionId;
}
/** What nobody here has asked for has gone, and is booked as lost. */
async function lost(msat: bigint, whileFound: () => Promise<void> = async () => undefined): Promise<void> {
  const { request, hash } = invoice();
  outgoing().send(request, msat, 10_000n);
  expect((await told()).map((one) => one.slice(0, 4))).toContain('LN-5');
  await whileFound();
  await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true });
  await clearBreakers(at.ctx.db, 'ann', clock.now());
  pass(1_000);
}
async function reimbursement(transactionId: string): Promise<Record<string, string>> {
  const text =
    'select id, status, step, held_reason from payouts where reimburses = $1 order by created_at desc, id desc limit 1';
  return (await at.admin.query(text, [transactionId])).rows[0];
}
const half = 5_000_000n;

test('what goes back of a transaction that was there before waits for an approval', async () => {
  expect(await told()).toEqual([]);
  const id = await paid();
  await lost(half);
  const { request, hash } = invoice();
  await at.reimburse(id, request);
  await looks(3);
  const { id: payoutId, ...row } = await reimbursement(id);
  expect(row).toEqual({ status: 'pending', step: 'held', held_reason: 'approval' });
  expect(BigInt(await engine.arrived(hash))).toBe(0n);
  expect((await readPayoutDetails(at.ctx.db, payoutId as string))?.trouble).toMatch(/may have sent this back already/);
  const waiting = () => waitingForOperator(at.ctx.db, { limit: 10, nowMs: clock.now() });
  expect(await waiting()).toEqual([{ id: payoutId, why: expect.stringMatching(/^waits: .* may have sent this back already/) }]);
  await approvePayout(at.ctx, { payoutId: payoutId as string, by: 'ann' });
  expect(await waiting()).toEqual([]);
  await looks(3);
  expect(await reimbursement(id)).toMatchObject({ status: 'completed' });
});

test('what was asked for before that was booked is decided by a person', async () => {
  expect(await told()).toEqual([]);
  const id = await paid();
  const { request, hash } = invoice();
  await lost(half, async () => {
    await at.reimburse(id, request);
  });
  await looks(3);
  const { id: payoutId, ...row } = await reimbursement(id);
  expect(row).toEqual({ status: 'processing', step: 'held', held_reason: 'unknown_outcome' });
  expect(BigInt(await engine.arrived(hash))).toBe(0n);
  await resolvePayout(at.ctx, { payoutId: payoutId as string, outcome: 'paid', evidence: 'the customer was asked' });
  expect(await reimbursement(id)).toMatchObject({ status: 'completed' });
  await at.work();
  expect(await told()).toEqual([]);
});

test('one that a person is asked about waits for him, also where the signer had it authorized before', async () => {
  expect(await told()).toEqual([]);
  const id = await paid();
  const { request, hash } = invoice();
  await at.reimburse(id, request);
  await at.look({}, 'ln-authorized');
  await lost(half);
  const asked = { status: 'processing', step: 'held', held_reason: 'unknown_outcome' };
  expect(await reimbursement(id)).toMatchObject(asked);
  // the database was put back, or started
  await at.admin.query(`update comparisons set timeline = 'another'`);
  await looks(3);
  // a request that was not answered arrives no more
  await looks(1, 5 * MINUTE);
  expect(BigInt(await engine.arrived(hash))).toBe(0n);
  const row = await reimbursement(id);
  expect(row).toMatchObject(asked);
  const resolution = { payoutId: row.id as string, outcome: 'failed', evidence: 'the customer was asked' } as const;
  await resolvePayout(at.ctx, resolution, at.paying.track);
  expect(await reimbursement(id)).toMatchObject({ status: 'failed' });
  await at.work();
  expect(await told()).toEqual([]);
});

test('one whose invoice the operator pays by hand is completed by that, and is not called paid before', async () => {
  expect(await told()).toEqual([]);
  const id = await paid();
  const { request } = invoice();
  await lost(half, async () => {
    await at.reimburse(id, request);
  });
  const { id: payoutId, held_reason: reason } = await reimbursement(id);
  expect(reason).toBe('unknown_outcome');
  await sendByHand(request, payoutId as string);
  const resolution = { payoutId: payoutId as string, outcome: 'paid', evidence: 'I have paid it' } as const;
  expect(await code(resolvePayout(at.ctx, resolution, at.paying.track))).toBe('not_resolvable');
  await told();
  await looks(1);
  expect(await reimbursement(id)).toMatchObject({ status: 'completed' });
  await at.work();
  expect(await told()).toEqual([]);
});

test('one that the node is paying by hand does not end with its invoice: its recipient may take it yet', async () => {
  expect(await told()).toEqual([]);
  const id = await paid();
  const { request, hash } = outgoing().invoice({ amountMsat: 0n, expirySeconds: 36_000, behaviour: 'hold' });
  await lost(half, async () => {
    await at.reimburse(id, request);
  });
  const { id: payoutId } = await reimbursement(id);
  await sendByHand(request, payoutId as string);
  await told();
  await looks(2, 36_000_000);
  expect(await reimbursement(id)).toMatchObject({ status: 'processing', held_reason: 'unknown_outcome' });
  outgoing().resolve(hash, true);
  await told();
  await looks(1);
  expect(await reimbursement(id)).toMatchObject({ status: 'completed' });
  await at.work();
  expect(await told()).toEqual([]);
});

test.each(['more than it was paid', 'what was lost before it was there'])('%s holds nothing', async (what) => {
  expect(await told()).toEqual([]);
  let id = await paid(what.startsWith('more') ? 4_00n : 10_00n);
  await lost(half);
  if (!what.startsWith('more')) id = await paid();
  const { request } = invoice();
  await at.reimburse(id, request);
  await looks(3);
  expect(await reimbursement(id)).toMatchObject({ status: 'completed' });
});
