// A payout that hangs, and that its operator has found paid: where its node ends it as failed after that, its merchant may have paid for nothing, and that is told.
// On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { AMOUNT, at, close, engine, invoice, looks, MINUTE, open, outgoing, pass, reached } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** One that no channel holds any more, and that the node calls under way. */
async function foundPaid(): Promise<{ readonly id: string; readonly hash: string }> {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  pass(70 * MINUTE);
  outgoing().leaveChannel(hash);
  await at.look();
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient says so' }, at.paying.track);
  return { id, hash };
}
async function told(): Promise<readonly string[]> {
  await at.compared();
  return (await runAudit(at.ctx)).pages.filter(({ id }) => id === 'LN-10').flatMap(({ findings }) => findings);
}

test('that the node has failed it is told until its operator lets it be', async () => {
  const { id, hash } = await foundPaid();
  expect(await told()).toEqual([]);
  outgoing().resolve(hash, false);
  expect(await told()).toEqual([
    expect.stringMatching(new RegExp(`^${id} was found paid by an operator, and node .*, which had it as number 1, .* ${hash} `)),
  ]);
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  expect(await acceptForgotten(at.ctx, hash)).toBe(id);
  expect(await told()).toEqual([]);
  expect(await acceptForgotten(at.ctx, hash)).toBeNull();
});

test('of one that its node has paid nothing is told, and there is nothing to let be', async () => {
  const { hash } = await foundPaid();
  expect(await acceptForgotten(at.ctx, hash)).toBeNull();
  outgoing().resolve(hash, true);
  expect(await told()).toEqual([]);
  expect(await acceptForgotten(at.ctx, hash)).toBeNull();
});

test('nor is it of one whose node was restored: that has forgotten it', async () => {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  pass(2 * MINUTE);
  await at.look({ node: async () => ({ ...(await at.paying.node()), paymentIndex: '0' }) });
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient says so' });
  outgoing().resolve(hash, false);
  await looks(1);
  expect(await told()).toEqual([]);
});

test('nor of one that its node had paid, and has forgotten since', async () => {
  const putBack = engine.backup();
  const { hash } = await foundPaid();
  outgoing().resolve(hash, true);
  expect(await told()).toEqual([]);
  await putBack();
  await reached();
  pass(MINUTE);
  await at.look();
  // another one gets its number
  outgoing().send(invoice().request, 0n, 10_000n);
  expect(await told()).toEqual([]);
});
