// Payouts over Lightning that our node cannot send now, and those that an operator decides: what is waited for, what it costs, and what the node's
// own word changes afterwards.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import type { SimulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openSimulatedPayouts } from '../support/lightning-payouts.ts';

const MINUTE = 60_000;
const AMOUNT = '0.00001';
const clock = { nowMs: 0, now: () => clock.nowMs };
let engine: SimulatedEngine;
let at: LightningPayouts;
let close: () => Promise<void>;
beforeEach(async () => {
  clock.nowMs = Date.now();
  ({ engine, at, close } = await openSimulatedPayouts(clock));
});
afterEach(() => close());

const outgoing = () => engine.node().outgoing;
const invoice = (behaviour: 'pay' | 'hold' = 'pay', amountMsat = 1_000_000n) =>
  outgoing().invoice({ amountMsat, expirySeconds: 3_600, behaviour });
async function looks(times: number, over: Parameters<LightningPayouts['look']>[0] = {}): Promise<void> {
  for (let n = 0; n < times; n++) {
    clock.nowMs += 16_000;
    await at.look(over);
  }
}
/** All but some 500 satoshis of our side are on their way out; `notSaid`: the node does not say so. */
function fill(): { readonly hash: string; readonly notSaid: Parameters<LightningPayouts['look']>[0] } {
  const large = invoice('hold', ((engine.node().localMsat() - 501_000n) * 1_000n) / 1_001n);
  outgoing().send(large.request, 0n, engine.node().localMsat());
  return { hash: large.hash, notSaid: { node: async () => ({ ...(await at.paying.node()), spendable: '1000000' }) } };
}

test('what the channels cannot send stays queued, and leaves when they can', async () => {
  const { hash } = fill();
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  await looks(20);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect(outgoing().payment(to.hash)).toBeNull();
  outgoing().resolve(hash, false);
  await looks(1);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
});

test('a node that has not enough at the moment is asked again for the same payment', async () => {
  const { hash, notSaid } = fill();
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  await looks(3, notSaid);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect(outgoing().payment(to.hash)).toMatchObject({ status: 'FAILED' });
  outgoing().resolve(hash, false);
  await looks(1, notSaid);
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 2n });
  expect(await engine.arrived(to.hash)).toBe(1_000);
});

test('and its word stands when the invoice has expired', async () => {
  const { notSaid } = fill();
  const soon = outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds: 70, behaviour: 'pay' });
  const ids = [(await at.request(invoice().request, AMOUNT)).id, (await at.request(soon.request, AMOUNT)).id];
  await looks(6, notSaid);
  const ended = await Promise.all(ids.map((id) => at.payout(id)));
  expect(ended).toMatchObject([
    { status: 'processing', error: null },
    { status: 'failed', error: 'the Lightning node could not send it' },
  ]);
  expect(await at.available()).toBe(500_000n - 1_010n);
});

/** One that the node never ends. */
async function stuck(): Promise<{ readonly id: string; readonly hash: string }> {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().leaveChannel(to.hash);
  clock.nowMs += 70 * MINUTE;
  await at.look();
  expect(await at.payout(id)).toMatchObject({ heldReason: 'unknown_outcome' });
  return { id, hash: to.hash };
}

test('one that an operator calls paid costs the fee that the node shows, else none', async () => {
  const { id, hash } = await stuck();
  const other = await stuck();
  await at.compared();
  outgoing().resolve(hash, true);
  await at.compared();
  for (const payoutId of [id, other.id]) await resolvePayout(at.ctx, { payoutId, outcome: 'paid', evidence: 'a preimage' });
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 2n });
  expect(await at.payout(other.id)).toMatchObject({ status: 'completed', fee: 0n });
  expect(await at.available()).toBe(500_000n - 2_002n);
  expect(await at.findings()).toEqual([]);
});

test('one that an operator calls failed, and the node lists as paid, turns the audit red until that is booked', async () => {
  const { id, hash } = await stuck();
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the recipient says so' }, at.paying.track);
  expect(await at.available()).toBe(500_000n);
  expect(await at.compared()).toEqual([]);
  outgoing().resolve(hash, true);
  expect(await at.compared()).toEqual([expect.stringMatching(`^LN-5: ${id} has failed, and node .* has paid ${hash}`)]);
  expect(await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true })).toBe(1_002n);
  expect(await at.findings()).toEqual([]);
});

test('one that a channel holds by now is called failed by nobody', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  clock.nowMs += 70 * MINUTE;
  // its other side has said only after that look that it has it
  await at.look({ track: async (hash) => ({ ...(await at.paying.track(hash)), isPending: false }) });
  expect(await at.payout(id)).toMatchObject({ heldReason: 'unknown_outcome' });
  const failed = { payoutId: id, outcome: 'failed', evidence: 'the recipient says so' } as const;
  await expect(resolvePayout(at.ctx, failed, at.paying.track)).rejects.toMatchObject({
    code: 'not_resolvable',
    message: expect.stringContaining('holds this payment'),
  });
  outgoing().resolve(to.hash, true);
  await looks(4);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
  expect(await at.available()).toBe(500_000n - 1_002n);
});

test('of one that is completed, or that an entry here is to pay, nobody is asked: its state says why it is not resolved', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  await looks(1);
  const resolved = (payoutId: string) =>
    resolvePayout(at.ctx, { payoutId, outcome: 'failed', evidence: 'its recipient does not have it' }, async () => {
      throw new Error('the node is asked');
    });
  await expect(resolved(id)).rejects.toThrow('The payout is completed: only one with held_reason unknown_outcome');
  const other = await addMerchant(at.ctx, {
    username: 'other',
    password: 'correct horse battery',
    email: 'o@example.com',
    businessName: 'Other',
  });
  const { rows } = await at.admin.query('select id from merchants where affiliate_id = $1', [other.affiliateId]);
  const asked = { merchantId: BigInt(rows[0].id), usdMinor: 10_00n, method: 'BTC-LN', label: null, email: null } as const;
  const here = await at.request((await createTransaction(at.ctx, asked)).address, '0.0001');
  await expect(resolved(here.id)).rejects.toThrow('The payout is processing: only one with held_reason unknown_outcome');
});
