// A node whose disk or database stands still goes on saying what it reads: of a request that it has taken, and not written down yet, it says that it has no
// such payment. Nothing that it says of an unanswered request is the last before it has written something itself.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentOrder, TrackedPayment } from '../../src/core/lightning/payer.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import type { SentPayments } from '../../src/worker/lightning/sent-comparison.ts';
import { AMOUNT, at, clock, close, code, invoice, looks, MINUTE, open, outgoing, pass, status } from './funded-payouts.ts';

const HOUR = 60 * MINUTE;
/** The request that the node has taken, and writes down when it can again; null = none. */
let begun: (() => unknown) | null;
let stands: boolean;
let hasWritten: boolean;
beforeEach(async () => {
  [begun, stands, hasWritten] = [null, false, false];
  await open({}, (payer) => ({
    ...payer,
    async send(order: PaymentOrder) {
      if (!stands) return payer.send(order);
      const atMs = clock.nowMs;
      begun = () => {
        // it was in time when it came
        clock.behindMs = clock.nowMs - atMs;
        outgoing().send(order.paymentRequest, 0n, order.feeLimit * 1_000n);
        clock.behindMs = 0;
      };
      return { state: 'unanswered', reason: 'nothing came' };
    },
  }));
  const { lightning } = at.ctx.ports;
  const writes = lightning?.writes;
  Object.assign(lightning as object, {
    async writes() {
      if (stands) throw new NodeTrouble('down', 'LND did not answer within 10000 ms');
      await begun?.();
      begun = null;
      await writes?.();
      hasWritten = true;
    },
  });
});
afterEach(close);

/** A payout whose only request the node has taken and not written down, and whose invoice has expired since. */
async function takenAndNotWritten(behaviour: 'pay' | 'hold' | 'fail' = 'pay') {
  const to = invoice(behaviour);
  const { id } = await at.request(to.request, AMOUNT);
  stands = true;
  await at.look();
  expect(begun).not.toBeNull();
  pass(2 * HOUR);
  await looks(3);
  return { id, hash: to.hash };
}

test('what it does not have is not failed before it writes, and is paid when it does', async () => {
  const { id, hash } = await takenAndNotWritten();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect((await at.payment(id)).trouble).toMatch(/^a request to pay it was not answered, and the Lightning node writes nothing/);
  stands = false;
  await looks(2);
  expect(outgoing().payment(hash)?.status).toBe('SUCCEEDED');
  expect(await status(id)).toBe('completed');
});

test('what it writes down then and a recipient holds is followed, and what he refuses fails', async () => {
  const held = await takenAndNotWritten('hold');
  stands = false;
  await looks(2);
  expect(await at.payout(held.id)).toMatchObject({ status: 'processing', heldReason: null });
  outgoing().resolve(held.hash, false);
  await looks(2);
  expect(await status(held.id)).toBe('failed');
});

test('what it writes down then and is refused at once stops nothing, where its list is read between the two', async () => {
  const { id, hash } = await takenAndNotWritten('hold');
  const send = begun;
  let listed: Awaited<ReturnType<SentPayments['payments']>> = [];
  begun = async () => {
    send?.();
    listed = (await at.signer.payments('0')).payments;
    outgoing().resolve(hash, false);
  };
  stands = false;
  await looks(1);
  expect(await status(id)).toBe('failed');
  expect(listed).toMatchObject([{ paymentHash: hash, status: 'in_flight' }]);
  await at.comparedPayments({
    async payments() {
      const page = listed;
      listed = [];
      return page;
    },
  });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
});

test('what it never had fails as soon as it has written something else', async () => {
  const { id, hash } = await takenAndNotWritten();
  [begun, stands] = [null, false];
  await looks(1);
  expect(await status(id)).toBe('failed');
  expect(outgoing().payment(hash)).toBeNull();
});

test('what has failed and was asked for once more is not failed before it writes', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().resolve(to.hash, false);
  const past = new Date(Date.now() - MINUTE);
  await at.admin.query('update lightning_payments set unanswered_until = $1 where payout_id = $2', [past, id]);
  stands = true;
  pass(2 * HOUR);
  await looks(2);
  expect(await status(id)).toBe('processing');
  stands = false;
  await looks(1);
  expect(await status(id)).toBe('failed');
});

test('an operator who calls it failed is told to wait, unless its node is gone', async () => {
  const { id } = await takenAndNotWritten();
  await at.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [id]);
  const resolution = { payoutId: id, outcome: 'failed', evidence: 'its recipient does not have it' } as const;
  await expect(resolvePayout(at.ctx, resolution, at.paying.track)).rejects.toThrow(/within 10000 ms/);
  expect(await status(id)).toBe('processing');
  expect(await code(resolvePayout(at.ctx, { ...resolution, isNodeGone: true }, at.paying.track))).toBe('accepted');
});

test('what it has written down by then its operator cannot call failed', async () => {
  const { id } = await takenAndNotWritten('hold');
  await at.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [id]);
  stands = false;
  const resolution = { payoutId: id, outcome: 'failed', evidence: 'its recipient does not have it' } as const;
  await expect(resolvePayout(at.ctx, resolution, at.paying.track)).rejects.toThrow(/may still/);
});

test.each([
  ['a channel holds', { payment: null, isPending: true }],
  ['a part is open of', { payment: { status: 'failed', isPartOpen: true }, isPending: false }],
])('what %s once it has written is not failed', async (_what, then) => {
  const { id } = await takenAndNotWritten();
  [begun, stands] = [null, false];
  const said: unknown[] = [then];
  const track = async (hash: string) => (hasWritten && said.length > 0 ? (said.pop() as TrackedPayment) : at.paying.track(hash));
  pass(MINUTE);
  await at.look({ track });
  expect(said).toEqual([]);
  expect(await status(id)).toBe('processing');
  await looks(1);
  expect(await status(id)).toBe('failed');
});
