// A payout that has failed here, and that the node's list has as under way under the number that it had: read a moment before its end, or hanging for good after
// its operator called it failed. Neither stops anybody's payouts. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { AMOUNT, at, close, invoice, looks, MINUTE, open, outgoing, pass, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** One that hangs for good, and that its operator has called failed. */
async function calledFailed(): Promise<string> {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  pass(70 * MINUTE);
  outgoing().leaveChannel(hash);
  await at.look();
  const resolution = { payoutId: id, outcome: 'failed', evidence: 'its recipient does not have it' } as const;
  expect(await resolvePayout(at.ctx, resolution, at.paying.track)).toMatchObject({ status: 'failed' });
  return hash;
}

test('one that hangs stops nothing once its operator has called it failed, and does when its recipient has it after all', async () => {
  const hash = await calledFailed();
  expect(await at.compared()).toEqual([]);
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  const { id } = await at.request(invoice().request, AMOUNT);
  await looks(2);
  expect(await status(id)).toBe('completed');
  outgoing().resolve(hash, true);
  await at.comparedPayments();
  expect(await openBreakers(at.ctx.db)).toMatchObject([{ trippedBy: ['LN-5'], findings: [expect.stringContaining(hash)] }]);
});

test('nor does it after a start of the database', async () => {
  await calledFailed();
  await at.admin.query('delete from comparisons');
  const { id } = await at.request(invoice().request, AMOUNT);
  await looks(3);
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  expect(await status(id)).toBe('completed');
});

test('one that fails while the list is being read stops nothing', async () => {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  await at.comparedPayments({
    async payments(after) {
      const page = await at.signer.payments(after.toString());
      if (page.payments.length > 0) return page.payments;
      outgoing().resolve(hash, false);
      await looks(1);
      expect(await status(id)).toBe('failed');
      return [];
    },
  });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
});
