// A payment whose channel is closed by force is on the chain: no channel lists its HTLC any more, and its recipient can still take it. The node says how it
// ended once the chain has; nobody is asked to decide before. On the simulated node; test/lightning/lnd-restored.test.ts has it on a real LND.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import type { LightningPaying } from '../../src/worker/payouts/lightning/steps.ts';
import { AMOUNT, at, close, code, engine, invoice, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** Listed channels hold nothing of it. */
const onNoChannel: Partial<LightningPaying> = {
  track: async (hash) => ({ ...(await at.paying.track(hash)), isPending: false }),
};
/** A payout whose recipient holds it, and whose invoice has expired long ago. */
async function hanging(): Promise<{ readonly id: string; readonly hash: string }> {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  pass(3 * 3_600_000);
  return { id, hash };
}
const closing = (isClosing: boolean): void => engine.node().own.setBetween(isClosing, isClosing);

test('while a channel is being closed nobody is asked to decide, and what the chain decides counts', async () => {
  const { id, hash } = await hanging();
  closing(true);
  await at.look(onNoChannel);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect(at.troubles).toEqual([expect.stringMatching(/^payout .*: .* a channel is being closed/)]);
  outgoing().resolve(hash, true);
  pass(3_600_000);
  await at.look(onNoChannel);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
});

test('what is under way still when every channel is closed hangs for good', async () => {
  const { id } = await hanging();
  closing(true);
  await at.look(onNoChannel);
  closing(false);
  pass(3_600_000);
  await at.look(onNoChannel);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
});

test('one is decided as failed by nobody while a channel is being closed, and as paid by whoever knows it', async () => {
  const [first, second] = [await hanging(), await hanging()];
  await at.look(onNoChannel);
  for (const { id } of [first, second]) expect(await at.payout(id)).toMatchObject({ heldReason: 'unknown_outcome' });
  closing(true);
  const failed = { payoutId: first.id, outcome: 'failed', evidence: 'its recipient says that it has nothing' } as const;
  expect(await code(resolvePayout(at.ctx, failed))).toBe('not_resolvable');
  expect(await at.payout(first.id)).toMatchObject({ status: 'processing' });
  const paid = { payoutId: second.id, outcome: 'paid', evidence: 'its recipient has it' } as const;
  expect(await resolvePayout(at.ctx, paid)).toMatchObject({ status: 'completed' });
  // a node that is gone for good cannot say so
  engine.node().setTrouble({ down: true, fault: null, left: null });
  expect(await resolvePayout(at.ctx, { ...failed, isNodeGone: true })).toMatchObject({ status: 'failed' });
});

test('where the node does not say whether a channel is being closed, nobody is asked to decide', async () => {
  const { id } = await hanging();
  const port = at.ctx.ports.lightning!;
  const { isClosing } = port;
  Object.assign(port, { isClosing: () => Promise.reject(new NodeTrouble('unauthorized', 'permission denied')) });
  await at.look(onNoChannel);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect(at.troubles).toEqual([expect.stringMatching(/^payout .*: .*permission denied/)]);
  Object.assign(port, { isClosing });
  pass(3_600_000);
  await at.look(onNoChannel);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
});
