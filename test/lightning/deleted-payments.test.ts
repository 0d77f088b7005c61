// An operator has his node forget the payments that have ended (`lncli deletepayments`) while another is under way: the node's numbers go on, so that it does not
// look restored. What a payout had paid it has paid all the same.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import {
  AMOUNT,
  at,
  close,
  invoice,
  looks,
  open,
  outgoing,
  status,
  toldAfterAMinute as told,
  unheard,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** One is paid, a later one is under way, and the node is made to forget the first. */
async function paidAndDeleted(isListedUnderWay: boolean): Promise<string> {
  expect(await told()).toEqual([]);
  const first = invoice('hold');
  const { id } = await at.request(first.request, AMOUNT);
  await at.look();
  if (isListedUnderWay) expect(await told()).toEqual([]);
  outgoing().resolve(first.hash, true);
  const later = invoice('hold');
  await at.request(later.request, AMOUNT);
  await looks(1);
  expect(await status(id)).toBe('completed');
  outgoing().forget(first.hash);
  outgoing().resolve(later.hash, true);
  await looks(1);
  return first.hash;
}

test('what was listed under way, and was paid and deleted since, stops nothing', async () => {
  await paidAndDeleted(true);
  expect(await told()).toEqual([]);
});

test('what was deleted before it was ever listed is let be by a word of its operator', async () => {
  const hash = await paidAndDeleted(false);
  expect(await told()).toEqual([expect.stringMatching(new RegExp(`^LN-5: .* does not list ${hash}`))]);
  expect(await acceptForgotten(at.ctx, hash)).not.toBeNull();
  expect(await told()).toEqual([]);
});

/** One is paid and listed, another is under way; of a third nothing is heard, its recipient has it, and the node is made to forget what has ended. */
async function unheardAndDeleted(): Promise<{ readonly id: string; readonly hash: string; readonly later: string }> {
  const first = invoice();
  const { id: before } = await at.request(first.request, AMOUNT);
  await looks(1);
  expect(await status(before)).toBe('completed');
  const later = invoice('hold');
  await at.request(later.request, AMOUNT);
  await at.look();
  expect(await told()).toEqual([]);
  const { request, hash } = invoice();
  const { id } = await at.request(request, AMOUNT);
  await at.look(unheard());
  outgoing().forget(first.hash);
  outgoing().forget(hash);
  return { id, hash, later: later.hash };
}

test('what was deleted before anything was heard of it is not asked for again, and its recipient says how it ended', async () => {
  const { id, hash, later } = await unheardAndDeleted();
  await looks(3);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await at.payment(id)).trouble).toMatch(/has nothing any more of what it listed as paid/);
  // nor once its invoice has expired
  await looks(3, 3_600_000);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(await at.payment(id)).toMatchObject({ sends: 1, payment_index: null });
  expect(outgoing().payment(hash)).toBeNull();
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient has it' });
  outgoing().resolve(later, true);
  await looks(1);
  expect(await told()).toEqual([]);
});

test('one that is asked for after the deletion, and was not heard of, is held by it no more once another was paid since', async () => {
  await unheardAndDeleted();
  const next = invoice();
  const { id: paid } = await at.request(next.request, AMOUNT);
  await looks(1);
  expect(await status(paid)).toBe('completed');
  await told();
  const { request, hash } = invoice();
  const { id } = await at.request(request, AMOUNT);
  await at.look({
    async send() {
      throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
    },
  });
  await looks(2);
  expect(await status(id)).toBe('completed');
  expect(outgoing().find(hash)?.receivedMsat).toBe(1_000_000n);
});

test('nor is it once what was under way at the deletion has ended and is listed, nor given back when its invoice has expired', async () => {
  const { id, hash, later } = await unheardAndDeleted();
  await looks(3);
  outgoing().resolve(later, true);
  await looks(1);
  await told();
  await looks(3, 61_000);
  expect(await at.payment(id)).toMatchObject({ sends: 1, payment_index: null });
  await looks(3, 3_600_000);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(outgoing().payment(hash)).toBeNull();
});
