// After database and signer were put back, what a node lists as paid is asked for again with the same invoice: it is completed by that payment, whatever waits
// or is booked meanwhile.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NOTHING_KNOWN, restorePayment } from '../../src/flow/lightning/restored-payments.ts';
import { bookOwnPayment, bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { cancelByOperator, cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { reconsiderPayout } from '../../src/flow/payouts/held-reasons.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  code,
  engine,
  looks,
  open,
  outgoing,
  invoice as ownInvoice,
  pass,
  reached,
  sendByHand,
  status,
  toldAfterAMinute as told,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);
const invoice = () => outgoing().invoice({ amountMsat: 0n, expirySeconds: 3_600, behaviour: 'pay' });
const row = async (id: string) =>
  (await at.admin.query('select id, status, step, held_reason, amount, fee_max, error from payouts where reimburses = $1', [id]))
    .rows[0];
const booked = async (paymentHash: string) => {
  await bookUnasked(at.ctx, { paymentHash, acceptsLoss: true });
  await clearBreakers(at.ctx.db, 'ann', clock.now());
  pass(1_000);
};
test('one whose own hash the node has paid is completed by that, whatever is booked as lost besides', async () => {
  expect(await told()).toEqual([]);
  const { transactionId: id } = await at.create(10_00n);
  const received = await at.hashOf(id);
  engine.node().pay(received, engine.node().find(received)!.valueMsat, 1);
  await at.work();
  const { request } = invoice();
  await at.reimburse(id, request);
  await sendByHand(request, (await row(id)).id);
  const other = invoice();
  outgoing().send(other.request, 5_000_000n, 10_000n);
  await told();
  await booked(other.hash);
  await looks(3);
  expect(await row(id)).toMatchObject({ status: 'completed' });
  await at.work();
  expect(await told()).toEqual([]);
});
test('a payout that the node has paid before it was asked for again is completed, also when its invoice expires while payouts are stopped', async () => {
  expect(await told()).toEqual([]);
  const { request } = ownInvoice();
  const { id } = await at.request(request, AMOUNT);
  outgoing().send(request, 0n, 10_000n);
  const other = invoice();
  outgoing().send(other.request, 5_000_000n, 10_000n);
  await told();
  await looks(3, 3_600_000);
  await booked(other.hash);
  await looks(3);
  expect(await status(id)).toBe('completed');
  expect(await told()).toEqual([]);
});
test('nobody cancels a payout that the node has paid before it was asked for again: its recipient has it', async () => {
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
  const [paid, unpaid] = [ownInvoice(), ownInvoice()];
  const { id } = await at.request(paid.request, AMOUNT);
  const other = await at.request(unpaid.request, AMOUNT);
  outgoing().send(paid.request, 0n, 10_000n);
  await at.comparedPayments();
  expect(await code(cancelPayout(at.ctx, { merchantId: at.merchantId, payoutId: id }))).toBe('payout_not_cancellable');
  expect(await code(cancelByOperator(at.ctx, { payoutId: id, by: 'ann' }))).toBe('payout_not_cancellable');
  expect(await code(cancelPayout(at.ctx, { merchantId: at.merchantId, payoutId: other.id }))).toBe('accepted');
});

for (const asked of ['before', 'after'] as const)
  test(`what the node had listed as paid, and has forgotten, it is not asked for once more: asked for ${asked} that`, async () => {
    expect(await told()).toEqual([]);
    const first = await at.request(ownInvoice().request, AMOUNT);
    await looks(2);
    expect(await status(first.id)).toBe('completed');
    const { request, hash } = ownInvoice();
    const putBack = engine.backup();
    outgoing().send(request, 0n, 10_000n);
    await told();
    const before = asked === 'before' ? await at.request(request, AMOUNT) : null;
    await putBack();
    await reached();
    await looks(1);
    const { id } = before ?? (await at.request(request, AMOUNT));
    // the node gives the number of the forgotten one to another
    const own = invoice();
    outgoing().send(own.request, 3_000_000n, 10_000n);
    await told();
    await bookOwnPayment(at.ctx, own.hash);
    await clearBreakers(at.ctx.db, 'ann', clock.now());
    await reconsiderPayout(at.ctx, id);
    pass(1_000);
    await looks(3);
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    expect((await at.payment(id)).trouble).toMatch(/has forgotten it, and may have paid it/);
    expect(outgoing().payment(hash)).toBeNull();
    await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient has it' }, at.paying.track);
    expect((await at.payout(id)).fee).toBe(2n);
  });

for (const now of ['has forgotten it', 'has forgotten it, and its invoice has expired', 'calls it failed'] as const)
  test(`nor where a worker ends between writing it back and holding it, and the node ${now}`, async () => {
    expect(await told()).toEqual([]);
    const { request, hash } = ownInvoice();
    const putBack = engine.backup();
    outgoing().send(request, 0n, 10_000n);
    await told();
    const { id } = await at.request(request, AMOUNT);
    await putBack();
    await reached();
    await looks(1);
    await clearBreakers(at.ctx.db, 'ann', clock.now());
    // as a copy that was made before its last try
    if (now === 'calls it failed') outgoing().send(request, 0n, 0n);
    const { identity: node } = await at.paying.node();
    if (now.endsWith('expired')) pass(3_600_000);
    // as the worker has it (worker/payouts/lightning/steps), up to where it ends
    const of = { payoutId: id, paymentHash: hash };
    expect(await restorePayment(at.ctx, of, { node, tracked: NOTHING_KNOWN, isForgotten: true })).toBe('written_back');
    await looks(3, 100_000);
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    expect((await at.payment(id)).trouble).toMatch(/has forgotten it, and may have paid it/);
    expect(outgoing().payment(hash)?.status ?? null).toBe(now === 'calls it failed' ? 'FAILED' : null);
  });

test('what the node had listed as paid, and is booked as lost, stays booked when it has forgotten it, and when it has it again', async () => {
  expect(await told()).toEqual([]);
  const { request, hash } = ownInvoice();
  const older = engine.backup();
  outgoing().send(request, 0n, 10_000n);
  const newer = engine.backup();
  await told();
  await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true });
  await older();
  await reached();
  await looks(1);
  // its number is another's now
  outgoing().send(invoice().request, 3_000_000n, 10_000n);
  await told();
  expect(await code(at.request(request, AMOUNT))).toBe('invoice_already_used');
  await newer();
  await reached();
  await told();
  expect(await code(at.request(request, AMOUNT))).toBe('invoice_already_used');
  expect(await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true })).toBeNull();
});
