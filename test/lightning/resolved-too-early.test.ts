// A payout whose outcome was unknown, and of which something may arrive by now, or still: whoever calls it failed would have it paid twice. On the simulated
// node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentFacts, TrackedPayment } from '../../src/core/lightning/payer.ts';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import type { Track } from '../../src/flow/lightning/may-arrive.ts';
import { type Resolution, resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { AMOUNT, at, close, forced, invoice, looks, MINUTE, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };
const failed = async (payoutId: string, track: Track | undefined = at.paying.track, more: Partial<Resolution> = {}) =>
  resolvePayout(at.ctx, { payoutId, outcome: 'failed', evidence: 'its recipient says that he has nothing', ...more }, track).then(
    ({ status }) => status,
    ({ code, message }: { readonly code: string; readonly message: string }) => `${code}: ${message}`,
  );
/** Who says that its node is gone for good. */
const failedForGood = (payoutId: string, track?: Track) => failed(payoutId, track, { isNodeGone: true });

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

/** The node has paid it, as it says. */
const paid =
  (as: Partial<PaymentFacts>): Track =>
  async (hash) => {
    if (outgoing().payment(hash)?.status === 'IN_FLIGHT') outgoing().resolve(hash, true);
    const said = await at.paying.track(hash);
    return { ...said, payment: { ...(said.payment as PaymentFacts), ...as } };
  };

test('one of which the node says that it may still arrive, once the node is back that was asked for it', async () => {
  const { id, hash } = await heldForAnotherNode();
  const mayArrive = saying(() => ({ isPending: true, arrivesUntil: 500 }));
  expect(await failed(id, mayArrive)).toBe(
    'not_resolvable: The Lightning node calls it under way, and what has left may still arrive, up to block 500.',
  );
  // nor for somebody who says that his node is gone, while it is there
  expect(await failedForGood(id, mayArrive)).toMatch(/may still arrive, up to block 500/);
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

test('one that the node has paid, before a worker has looked at it', async () => {
  const { id, hash } = await heldForAnotherNode();
  outgoing().resolve(hash, true);
  expect(await failed(id)).toMatch(
    /^not_resolvable: The Lightning node has paid it, with the preimage [0-9a-f]{64}: the worker completes it/,
  );
  expect(await failedForGood(id)).toMatch(/has paid it/);
  await looks(1, MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
});

test.each<[string, () => Track]>([
  ['may come no more', () => at.paying.track],
  ['the node has paid with another amount', () => paid({ amountMsat: '999999' })],
  ['the node has paid for a higher fee', () => paid({ feeMsat: '10001' })],
  ['the node calls paid, and shows no preimage of it', () => paid({ preimage: 'ab'.repeat(32) })],
])('one that %s is failed by its operator', async (_what, track) => {
  const { id } = await heldForAnotherNode();
  expect(await failed(id, track())).toBe('failed');
  expect(await at.available()).toBe(500_000n);
});

const refusal = Object.assign(new Error('permission denied'), { name: 'LndRefusal' });
const trouble = Object.assign(new Error('it does not answer'), { name: 'NodeTrouble' });
const there = { state: 'ready', height: 1, identity: `02${'ab'.repeat(32)}`, version: '0.21' } as const;
test.each<[string, { readonly port?: Partial<LightningPort> | null; readonly track?: Track | undefined }, RegExp]>([
  ['whose signer does not answer', { track: async () => ({ unasked: 'no signer' }) }, /\(no signer\)/],
  ['that no node here may pay', { track: undefined }, /\(no node may pay here\)/],
  ['whose node lists no channels', { port: { holds: () => Promise.reject(refusal) } }, /\(permission denied\)/],
  ['whose node does not say what it closes', { port: { isClosing: () => Promise.reject(trouble) } }, /\(it does not answer\)/],
  ['where no node is configured any more', { port: null }, /\(no node is configured here\)/],
  [
    'where another node is there',
    { port: { condition: async () => there } },
    /\(node \w+ was asked to pay it, and this is node 02abab\w+\)/,
  ],
  [
    'whose node is reading its chain, and may be another one',
    { port: { condition: async () => ({ state: 'syncing', reason: 'it reads its chain' }) } },
    /\(it reads its chain\)/,
  ],
])('one %s is failed only for who says that the node is gone', async (_what, { port, ...asked }, why) => {
  const { id } = await heldForAnotherNode();
  const { ports } = at.ctx;
  if (port === null) Object.assign(at, { ctx: { ...at.ctx, ports: { ...ports, lightning: null } } });
  else Object.assign(ports.lightning ?? {}, port);
  const track = 'track' in asked ? asked.track : at.paying.track;
  const ended = (isNodeGone: boolean) =>
    resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'he has nothing', isNodeGone }, track);
  await expect(ended(false)).rejects.toMatchObject({ code: 'not_resolvable', message: expect.stringMatching(why) });
  await expect(ended(false)).rejects.toThrow(/--node-gone/);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  expect(await ended(true)).toMatchObject({ status: 'failed' });
});

test.each<[string, Partial<LightningPort>, RegExp]>([
  ['that a channel holds', { holds: async () => true }, /A channel of the Lightning node holds this payment/],
  [
    'that a channel may hold that is being closed',
    { isClosing: async () => true },
    /is closing a channel that may hold this payment/,
  ],
])('one %s is failed by nobody, whatever the signer knows and its operator says', async (_what, port, why) => {
  const { id } = await heldForAnotherNode();
  Object.assign(at.ctx.ports.lightning ?? {}, port);
  expect(await failed(id)).toMatch(why);
  expect(await failedForGood(id, async () => ({ unasked: 'no signer' }))).toMatch(why);
});

test('one about which the node is not asked, for a fault of ours', async () => {
  const { id } = await heldForAnotherNode();
  Object.assign(at.ctx.ports.lightning ?? {}, { holds: () => Promise.reject(new TypeError('a fault')) });
  expect(await failedForGood(id)).toMatch('undefined: a fault');
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

test('one of which each request was answered, whether or not the node has its turn to write', async () => {
  const { id } = await heldForAnotherNode();
  expect(await at.payment(id)).toMatchObject({ unanswered_until: null });
  Object.assign(at.ctx.ports.lightning ?? {}, { writes: () => Promise.reject(trouble) });
  expect(await failed(id)).toBe('failed');
});

test('one that no node was asked for waits for what it waits for, and one that there is not is not found', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  expect(await at.payment(id)).toMatchObject({ node: null });
  expect(await failed(id)).toMatch('only one with held_reason unknown_outcome can be resolved');
  expect(await failed('payout_nowhere')).toMatch('payout_not_found');
});
