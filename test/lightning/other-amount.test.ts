// Our node pays each payment hash once. What it has paid for a hash with another amount than a payout's is no evidence for that payout, though the preimage
// is right: an invoice without an amount may have been paid by the operator, or for a payout that he has called failed. On the simulated node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdUnknownPayment } from '../../src/flow/lightning/payout-progress.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { at, close, looks, MINUTE, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const withoutAmount = (behaviour: 'pay' | 'hold') =>
  outgoing().invoice({ amountMsat: 0n, expirySeconds: 30 * 86_400, behaviour });
const waitsForOperator = { status: 'processing', heldReason: 'unknown_outcome', error: null };

test('what the operator has paid for less does not complete a payout: an operator decides', async () => {
  const to = withoutAmount('pay');
  outgoing().send(to.request, 1_000_000n, 1_000_000n);
  const { id } = await at.request(to.request, '0.0001');
  await looks(1);
  expect(await at.payout(id)).toMatchObject(waitsForOperator);
  expect(at.troubles.at(-1)).toBe(
    `payout ${id}: the Lightning node has paid ${to.hash} with 1000000 thousandths of a satoshi, and the payout sends 10000 satoshis: it was paid for somebody else; decide (bursar payout resolve)`,
  );
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  await looks(3, 61_000);
  expect(await at.payout(id)).toMatchObject(waitsForOperator);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the node had paid it before' }, at.paying.track);
  expect(await at.available()).toBe(500_000n);
});

test('nor does what is paid late for a payout that was called failed complete the next one to the invoice, for more', async () => {
  const to = withoutAmount('hold');
  const first = await at.request(to.request, '0.00001');
  await at.look({
    async send(asked) {
      await at.paying.send(asked);
      // an operator is sure, and is wrong
      await holdUnknownPayment(at.ctx, { payoutId: first.id, leaseEpoch: BigInt(asked.leaseEpoch) });
      return { state: 'unanswered', reason: 'it lies on the wire' };
    },
  });
  outgoing().leaveChannel(to.hash);
  pass(2 * MINUTE);
  await resolvePayout(at.ctx, { payoutId: first.id, outcome: 'failed', evidence: 'it hangs' }, at.paying.track);
  expect(await at.available()).toBe(500_000n);
  const next = await at.request(to.request, '0.0001');
  await looks(1);
  outgoing().resolve(to.hash, true);
  await looks(2);
  expect(await at.payout(next.id)).toMatchObject(waitsForOperator);
  expect(await at.available()).toBe(500_000n - 10_100n);
});
