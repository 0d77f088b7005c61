// A Lightning node that calls a payout paid and shows a preimage that is not that of its payment hash, or none, has shown nothing: nothing is booked, payouts
// stop, and the true preimage ends it later. On the simulated node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearBreakers, openBreakers } from '../../src/store/ledger/breakers.ts';
import { AMOUNT, at, clock, close, invoice, looks, open, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

test.each(['ab'.repeat(32), null, ''])('paid, with the preimage %s', async (preimage) => {
  const { request, hash } = invoice();
  const { id } = await at.request(request, AMOUNT);
  await at.look({
    async send(asked) {
      const answer = await at.paying.send(asked);
      return answer.state === 'taken' ? { ...answer, payment: { ...answer.payment, preimage } } : answer;
    },
  });
  const [stopped] = await openBreakers(at.ctx.db);
  expect(stopped).toMatchObject({ trippedBy: ['LN-5'], findings: [expect.stringContaining(`no preimage of ${hash}`)] });
  expect(await at.payment(id)).toMatchObject({ state: 'sent', preimage: null });
  expect(await status(id)).toBe('processing');
  expect(await at.available()).toBe(500_000n - 1_010n);
  await clearBreakers(at.ctx.db, 'a test', clock.nowMs);
  await looks(2);
  expect(await status(id)).toBe('completed');
  expect(await at.compared()).toEqual([]);
});
