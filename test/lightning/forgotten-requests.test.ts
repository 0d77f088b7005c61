// A node that is put back to before a request to pay of which no answer came: it says the same as one that never had it. Its channels tell the two apart.
// On a simulated node with a clock that the test moves; test/lightning/lnd-restored.test.ts has it on a real LND.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import {
  AMOUNT,
  at,
  close,
  engine,
  forced,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  reached,
  status,
  unheard,
} from './funded-payouts.ts';
import { forgotten } from './put-back.ts';

beforeEach(() => open());
afterEach(close);

test('while a channel is closed by force one of which no answer came is neither asked for again nor failed', async () => {
  const { id, hash } = await forgotten();
  forced(true);
  await looks(3, 30_000);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await at.payment(id)).trouble).toMatch(/may have been restored from an older state/);
  await looks(3, 61 * MINUTE);
  expect(await status(id)).toBe('processing');
  // it concerns nobody else
  expect(await openBreakers(at.ctx.db)).toEqual([]);
});

test('where the channels are as they were it is asked for again, and what the node says of that counts', async () => {
  const { id, hash } = await forgotten();
  await looks(1, 30_000);
  expect(outgoing().payment(hash)?.status).toBe('IN_FLIGHT');
  outgoing().resolve(hash, false);
  // the other side of the channel is met only now
  forced(true);
  await looks(2, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  forced(false);
  await looks(1, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'the recipient did not accept the payment' });
});

test('what the node took at once, or shows to have taken, is failed by its word also while a channel is closed by force', async () => {
  const [answered, shown] = [invoice('hold'), invoice('hold')];
  const first = await at.request(answered.request, AMOUNT);
  await at.look();
  const second = await at.request(shown.request, AMOUNT);
  await at.look(unheard());
  await looks(1);
  forced(true);
  for (const { hash } of [answered, shown]) outgoing().resolve(hash, false);
  await looks(3, 2 * MINUTE);
  expect([await status(first.id), await status(second.id)]).toEqual(['failed', 'failed']);
});

test('where the node does not say how its channels are, it waits', async () => {
  const { id, hash } = await forgotten();
  const port = at.ctx.ports.lightning!;
  const { mayBeOlder } = port;
  Object.assign(port, { mayBeOlder: () => Promise.reject(new NodeTrouble('unauthorized', 'permission denied')) });
  await looks(1, 30_000);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect((await at.payment(id)).trouble).toMatch(/permission denied/);
  expect(outgoing().payment(hash)).toBeNull();
  Object.assign(port, { mayBeOlder });
  await looks(1, 2 * MINUTE);
  expect(outgoing().payment(hash)?.status).toBe('IN_FLIGHT');
});

test('a node that is put back to between a first attempt, which failed, and a second one is noticed', async () => {
  const [to, large] = [invoice('hold'), invoice('hold', ((engine.node().localMsat() - 501_000n) * 1_000n) / 1_001n)];
  outgoing().send(large.request, 0n, engine.node().localMsat());
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({ node: async () => ({ ...(await at.paying.node()), spendable: '1000000000' }) });
  expect(outgoing().payment(to.hash)?.status).toBe('FAILED');
  outgoing().resolve(large.hash, false);
  const putBack = engine.backup();
  await looks(1);
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  await putBack();
  await reached();
  pass(2_000);
  await at.look();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
});

test('a process that ends when it has noted the answer to a request has noted what the node took as well', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const putBack = engine.backup();
  const { db } = at.ctx;
  const { query } = db;
  let hasEnded = false;
  Object.assign(db, {
    async query(asked: { readonly name?: string }, ...more: never[]) {
      if (hasEnded) throw new Error('the process has ended');
      const answer = await Reflect.apply(query, db, [asked, ...more]);
      hasEnded = asked.name === 'note_lightning_answer';
      return answer;
    },
  });
  await expect(at.look()).rejects.toThrow('the process has ended');
  Object.assign(db, { query });
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  await putBack();
  await reached();
  await looks(3, 2 * MINUTE);
  expect(outgoing().payment(to.hash)).toBeNull();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
});

test("what the node says it never had, while a channel holds it, is an operator's to decide", async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const isPending = { track: async () => ({ payment: null, isPending: true }) };
  await at.look({ ...isPending, ...unheard() });
  let asked = 0;
  // it was taken between the two answers
  await reached();
  pass(16_000);
  await at.look({ track: async (hash) => (asked++ === 0 ? { payment: null, isPending: true } : at.paying.track(hash)) });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  pass(16_000);
  await at.look(isPending);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  pass(2 * 60 * MINUTE);
  await at.look({ track: async () => ({ payment: null, isPending: false }) });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  outgoing().resolve(to.hash, true);
  await looks(1, 2 * MINUTE);
  expect(await status(id)).toBe('completed');
});
