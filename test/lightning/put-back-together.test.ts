// Database and node both put back to before a payout was sent: the node knows nothing of it, and only the signer's journal shows that it had it made.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { AMOUNT, at, close, code, forced, invoice, open, outgoing } from './funded-payouts.ts';
import { bothPutBack } from './put-back.ts';

let end: () => Promise<void> = async () => undefined;
beforeEach(() => open());
afterEach(async () => {
  await end();
  await close();
});

/** A payout that the node was asked to pay, of which the database and the node have forgotten that it was. */
async function forgotten(over: Parameters<typeof at.look>[0] = {}) {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const { ctx, looks, ...restored } = await bothPutBack(
    async () => {
      await at.look();
      expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
    },
    { over },
  );
  end = restored.end;
  const seen = () => restored.seen(id);
  const cancelled = () => code(cancelPayout(ctx, { merchantId: at.merchantId, payoutId: id }));
  return { hash: to.hash, id, ctx, looks, seen, cancelled };
}
const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };

test('while a channel is closed by force it is neither asked for again nor failed, and an operator decides', async () => {
  const { hash, id, ctx, looks, seen, cancelled } = await forgotten();
  forced(true);
  await looks(2);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await seen()).toMatchObject(UNKNOWN);
  expect(await cancelled()).toBe('payout_not_cancellable');
  await looks(3, 61 * 60_000);
  expect(await seen()).toMatchObject(UNKNOWN);
  await resolvePayout(ctx, { payoutId: id, outcome: 'paid', evidence: 'the recipient has it' });
  expect(await seen()).toMatchObject({ status: 'completed' });
});

test('where that is seen only after it was asked for again, the node is not believed that it failed', async () => {
  const { hash, looks, seen } = await forgotten();
  await looks(1);
  expect(outgoing().payment(hash)?.status).toBe('IN_FLIGHT');
  await looks(1);
  outgoing().resolve(hash, false);
  forced(true);
  await looks(4, 120_000);
  expect(await seen()).toMatchObject(UNKNOWN);
});

test('where its channels are as they were it is asked for again, and what the node says of that counts', async () => {
  const { hash, looks, seen } = await forgotten();
  await looks(1);
  outgoing().resolve(hash, true);
  await looks(1);
  expect(await seen()).toMatchObject({ status: 'completed' });
});

test('nor is it failed where the node that was put back cannot read its invoice', async () => {
  const { hash, looks, seen } = await forgotten({
    authorize: () => Promise.reject(Object.assign(new Error('rule invoice (x): the node cannot read it'), { fault: 'refused' })),
  });
  await looks(3);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await seen()).toMatchObject({ status: 'processing', heldReason: null });
});

test('where the node does not say how its channels are, nothing is asked for and nothing can be cancelled', async () => {
  const { hash, looks, seen, cancelled } = await forgotten();
  const port = at.ctx.ports.lightning!;
  const { mayBeOlder } = port;
  Object.assign(port, { mayBeOlder: () => Promise.reject(new NodeTrouble('unauthorized', 'permission denied')) });
  await looks(2);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await cancelled()).toBe('payout_not_cancellable');
  Object.assign(port, { mayBeOlder });
  forced(true);
  await looks(2);
  expect(await seen()).toMatchObject(UNKNOWN);
});
