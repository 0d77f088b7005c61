// A payout whose outcome was unknown, and of which something may arrive by now, or still: whoever calls it failed would have it paid twice. On the simulated
// node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentFacts, TrackedPayment } from '../../src/core/lightning/payer.ts';
import { resolvePayout, type Track } from '../../src/flow/payouts/resolve.ts';
import { AMOUNT, at, close, forced, invoice, looks, MINUTE, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };
const failed = async (payoutId: string, track: Track | null = at.paying.track): Promise<string> =>
  resolvePayout(at.ctx, { payoutId, outcome: 'failed', evidence: 'its recipient says that he has nothing' }, track).then(
    ({ status }) => status,
    ({ code, message }: { readonly code: string; readonly message: string }) => `${code}: ${message}`,
  );

/** The node has a payment under way, and no channel lists an HTLC of it; another node was there for so long that its operator was to decide. */
async function heldForAnotherNode(): Promise<{ readonly id: string; readonly hash: string }> {
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  outgoing().leaveChannel(hash);
  pass(70 * MINUTE);
  const another = { ...(await at.paying.node()), identity: `02${'ab'.repeat(32)}` };
  await at.look({ node: async () => another, track: async () => ({ payment: null, isPending: false }) });
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  return { id, hash };
}
/** What the node says of it, and something else. */
const saying =
  (more: (payment: PaymentFacts) => Partial<TrackedPayment>): Track =>
  async (hash) => {
    const said = await at.paying.track(hash);
    return { ...said, ...more(said.payment as PaymentFacts) };
  };

test('one of which the node says that it may still arrive, once the node is back that was asked for it', async () => {
  const { id, hash } = await heldForAnotherNode();
  const mayArrive = saying(() => ({ isPending: true, arrivesUntil: 500 }));
  expect(await failed(id, mayArrive)).toBe(
    'not_resolvable: The Lightning node calls it under way, and what has left may still arrive, up to block 500.',
  );
  expect(
    await failed(
      id,
      saying(() => ({ isPending: true })),
    ),
  ).toMatch(/A channel of the Lightning node holds this payment/);
  outgoing().resolve(hash, true);
  await looks(1, MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
});

test('one of which a part was taken', async () => {
  const { id } = await heldForAnotherNode();
  const preimage = 'ab'.repeat(32);
  expect(
    await failed(
      id,
      saying((payment) => ({ payment: { ...payment, preimage } })),
    ),
  ).toMatch(/^not_resolvable: The recipient has taken a part of it, with the preimage abab/);
});

test.each<[string, () => Track | null]>([
  ['may come no more', () => at.paying.track],
  ['the node has paid with another amount', () => saying((payment) => ({ payment: { ...payment, status: 'succeeded' } }))],
  ['nobody can ask about', () => async () => null],
  ['no node here may pay', () => null],
])('one that %s is failed by its operator', async (_what, track) => {
  const { id } = await heldForAnotherNode();
  expect(await failed(id, track())).toBe('failed');
  expect(await at.available()).toBe(500_000n);
});

test.each<[string, Error, string | RegExp]>([
  ['refuses to say anything', Object.assign(new Error('permission denied'), { name: 'LndRefusal' }), 'failed'],
  ['is not asked, for a fault of ours', new TypeError('a fault'), 'undefined: a fault'],
])('one of which the node %s', async (_what, error, says) => {
  const { id } = await heldForAnotherNode();
  Object.assign(at.ctx.ports.lightning ?? {}, { holds: () => Promise.reject(error) });
  expect(await failed(id)).toMatch(says);
});

test('one where no node is configured any more', async () => {
  const { id } = await heldForAnotherNode();
  const ctx = { ...at.ctx, ports: { ...at.ctx.ports, lightning: null } };
  const { status } = await resolvePayout(ctx, { payoutId: id, outcome: 'failed', evidence: 'the node is gone' });
  expect(status).toBe('failed');
});

test('one of which a request was not answered and may still arrive at the node', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  await at.look({ send: () => Promise.reject(Object.assign(new Error('no answer'), { fault: 'unreachable' })) });
  // its lease has ended; by the node's clock it may not have
  forced(true);
  await looks(1, 21_000);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  forced(false);
  pass(50_000);
  expect(await failed(id)).toMatch(/^not_resolvable: A request to pay it was not answered, and may still arrive/);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  pass(10_000);
  expect(await failed(id)).toBe('failed');
});
