// A node whose machine was stopped for a while goes on with the clock of then: by that it takes a request to pay that ours says it takes no more. While its own
// clock has not passed the end of one that was not answered, nothing that it says of the payment is the last.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentOrder } from '../../src/core/lightning/payer.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { AMOUNT, at, clock, close, code, invoice, looks, MINUTE, open, outgoing, pass, status } from './funded-payouts.ts';

const HOUR = 60 * MINUTE;
/** The request that waits somewhere on its way to the node; null = it is not to wait. */
let late: (() => Promise<unknown>) | null;
let isLate: boolean;
beforeEach(async () => {
  [late, isLate] = [null, false];
  await open({}, (payer) => ({
    ...payer,
    async send(order: PaymentOrder) {
      if (!isLate) return payer.send(order);
      late = () => payer.send(order);
      return { state: 'unanswered', reason: 'nothing came' };
    },
  }));
});
afterEach(close);

/** Our clock goes on, and that of the node does not. */
function stopped(ms: number): void {
  clock.behindMs += ms;
  pass(ms);
}

/** A payout whose only request is late, and whose invoice has expired by our clock while the node was stopped. */
async function lateRequest() {
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  isLate = true;
  await at.look();
  expect(late).not.toBeNull();
  stopped(2 * HOUR);
  await looks(3, 2_000);
  return { id, hash: to.hash };
}

test('a late request that it takes by its own clock pays a payout that was not failed before', async () => {
  const { id, hash } = await lateRequest();
  expect(await at.payout(id)).toMatchObject({ status: 'processing' });
  expect((await at.payment(id)).trouble).toMatch(/clock is 72\d\d seconds behind this server's/);
  await late?.();
  expect(outgoing().payment(hash)?.status).toBe('SUCCEEDED');
  await looks(1);
  expect(await status(id)).toBe('completed');
});

test('it fails once the clock of the node has passed the end of the request, which is refused from then on', async () => {
  const { id, hash } = await lateRequest();
  expect(await status(id)).toBe('processing');
  clock.behindMs = 0;
  // whether it was put back while it was away, its channels must show first
  await looks(3, HOUR);
  expect(await status(id)).toBe('failed');
  await late?.();
  expect(outgoing().payment(hash)).toBeNull();
});

test('one that failed is not the last word either: it may be asked for once more', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().resolve(to.hash, false);
  await at.admin.query('update lightning_payments set unanswered_until = $1 where payout_id = $2', [
    new Date(clock.nowMs + 20_000),
    id,
  ]);
  stopped(2 * HOUR);
  await looks(3, 2_000);
  expect(await status(id)).toBe('processing');
  clock.behindMs = 0;
  await looks(2);
  expect(await status(id)).toBe('failed');
});

test('what it took in the last moment has a while to be known, by its clock too', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().resolve(to.hash, false);
  const untilMs = clock.nowMs + 20_000;
  await at.admin.query('update lightning_payments set unanswered_until = $1 where payout_id = $2', [new Date(untilMs), id]);
  stopped(2 * HOUR);
  clock.behindMs = clock.nowMs - untilMs - 3_000;
  await looks(2, 2_000);
  expect(await status(id)).toBe('processing');
  clock.behindMs = clock.nowMs - untilMs - 12_000;
  await looks(2);
  expect(await status(id)).toBe('failed');
});

test('an operator who calls it failed is told to wait', async () => {
  const { id } = await lateRequest();
  await at.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [id]);
  const resolution = { payoutId: id, outcome: 'failed', evidence: 'its recipient does not have it' } as const;
  await expect(resolvePayout(at.ctx, resolution, at.paying.track)).rejects.toThrow(/clock is 72\d\d seconds behind/);
  clock.behindMs = 0;
  expect(await code(resolvePayout(at.ctx, resolution, at.paying.track))).toBe('accepted');
});

test('it counts for the limits of the signer until then', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().resolve(to.hash, false);
  isLate = true;
  const leased = `update lightning_payments set lease_owner = 'test', lease_until = $2 where payout_id = $1`;
  await at.admin.query(leased, [id, new Date(clock.nowMs + 20_000)]);
  const counted = at.leaving();
  expect(counted).not.toEqual([]);
  await at.signer.send({ payoutId: id, leaseEpoch: String((await at.payment(id)).lease_epoch) });
  expect(late).not.toBeNull();
  stopped(2 * HOUR);
  const resolution = { payoutId: id, outcome: 'failed', evidence: 'the node is gone', isNodeGone: true } as const;
  await at.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [id]);
  await resolvePayout(at.ctx, resolution, async () => ({ unasked: 'the node is gone' }));
  expect(await at.signer.giveBackFailed()).toBe(false);
  clock.behindMs = 0;
  expect(await at.signer.giveBackFailed()).toBe(true);
});
