// One that the node was asked to pay once more after it had failed has another number in its list, and none under the first any more: what was read under that is
// not under way for good.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bookOwnPayment } from '../../src/flow/lightning/unasked-payments.ts';
import { at, close, invoice, open, outgoing, toldAfterAMinute as told } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** The operator's own: listed while it is under way, then given back, and asked for once more. */
async function askedAgain(): Promise<string> {
  expect(await told()).toEqual([]);
  const { request, hash } = invoice('hold');
  outgoing().send(request, 0n, 10_000n);
  expect(await told()).toEqual([expect.stringMatching(/^LN-5: /)]);
  outgoing().send(invoice('fail').request, 0n, 10_000n);
  outgoing().resolve(hash, false);
  outgoing().send(request, 0n, 10_000n);
  return hash;
}

test('that it has succeeded then its operator can have booked', async () => {
  const hash = await askedAgain();
  outgoing().resolve(hash, true);
  await told();
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await told()).toEqual([]);
});

test('that it has failed then is forgotten', async () => {
  const hash = await askedAgain();
  await told();
  outgoing().resolve(hash, false);
  expect(await told()).toEqual([]);
});
