// An operator has his node forget the payments that have ended (`lncli deletepayments`) while another is under way: the node's numbers go on, so that it does not
// look restored. What a payout had paid it has paid all the same.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { AMOUNT, at, close, invoice, looks, open, outgoing, status, toldAfterAMinute as told } from './funded-payouts.ts';

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
