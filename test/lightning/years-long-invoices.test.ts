// What hangs at the node for good is given to an operator also where its invoice does not expire within any time that somebody waits, and nothing is
// while the node may still be looking for a route. On a simulated node with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentFacts } from '../../src/core/lightning/payer.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import type { LightningPaying } from '../../src/worker/payouts/lightning/steps.ts';
import { AMOUNT, at, clock, close, MINUTE, open, outgoing, pass, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const DAY = 24 * 60 * MINUTE;
const YEARS = 300 * 365 * 86_400;
const HANGS = { status: 'processing', heldReason: 'unknown_outcome' };
const GOES = { status: 'processing', heldReason: null };
const lasting = (expirySeconds: number) => outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds, behaviour: 'hold' });
/** No channel holds anything of it. */
const onNoChannel: Partial<LightningPaying> = {
  track: async (hash) => ({ ...(await at.paying.track(hash)), isPending: false }),
};
async function sent(expirySeconds: number): Promise<string> {
  const { id } = await at.request(lasting(expirySeconds).request, AMOUNT);
  await at.look();
  return id;
}
async function lookAfter(ms: number, asked = onNoChannel): Promise<void> {
  pass(ms);
  await at.look(asked);
}

test('what hangs for good is asked about a day after the request, however long its invoice lasts', async () => {
  const id = await sent(YEARS);
  await lookAfter(DAY - MINUTE);
  expect(await at.payout(id)).toMatchObject(GOES);
  await lookAfter(2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(HANGS);
  for (const { hash } of outgoing().inFlight()) outgoing().leaveChannel(hash);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the recipient has nothing' }, at.paying.track);
  expect(await status(id)).toBe('failed');
  expect(await at.available()).toBe(500_000n);
});

test('what a channel holds is waited for, for as long as it does', async () => {
  const id = await sent(YEARS);
  await lookAfter(2 * DAY, {});
  expect(await at.payout(id)).toMatchObject(GOES);
});

test('what has left and no channel lists is waited for until nobody can take it any more, and its operator is told until when', async () => {
  const id = await sent(YEARS);
  const mayArrive: Partial<LightningPaying> = {
    track: async (hash) => ({ ...(await at.paying.track(hash)), isPending: true, arrivesUntil: 500 }),
  };
  await lookAfter(DAY - MINUTE, mayArrive);
  expect(await at.payment(id)).toMatchObject({ trouble: null, due_at: new Date(clock.nowMs + 10_000) });
  await lookAfter(2 * MINUTE, mayArrive);
  expect(await at.payout(id)).toMatchObject(GOES);
  expect(await at.payment(id)).toMatchObject({
    trouble: expect.stringMatching(/no channel lists an HTLC of it: what has left may still arrive, up to block 500$/),
    due_at: new Date(clock.nowMs + MINUTE),
  });
  await lookAfter(2 * DAY, mayArrive);
  expect(await at.payout(id)).toMatchObject(GOES);
  await lookAfter(MINUTE);
  expect(await at.payout(id)).toMatchObject(HANGS);
});

/** Of its payment in parts a part was taken, and another hangs. */
const inPart = (status: 'in_flight' | 'succeeded', takenMsat = '400000'): Partial<LightningPaying> => ({
  async track(hash) {
    const { payment } = await at.paying.track(hash);
    const preimage = outgoing().find(hash)?.preimage as string;
    return { payment: { ...(payment as PaymentFacts), status, preimage, takenMsat }, isPending: false };
  },
});

test('one of which a part hangs, and another was taken, is paid: its recipient has given his receipt', async () => {
  const id = await sent(YEARS);
  await lookAfter(DAY - MINUTE, inPart('in_flight'));
  expect(await at.payout(id)).toMatchObject(GOES);
  await lookAfter(2 * MINUTE, inPart('in_flight'));
  expect(await at.payout(id)).toMatchObject({ status: 'completed', heldReason: null });
  expect(await at.available()).toBe(499_000n);
  expect(at.troubles.at(-1)).toMatch(
    /its recipient has taken 400000 of 1000000 thousandths of a satoshi, and given a receipt for all of it/,
  );
});

test('what came back of one that its recipient has given a receipt for is told, once', async () => {
  const id = await sent(YEARS);
  await lookAfter(MINUTE, inPart('succeeded'));
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
  await lookAfter(MINUTE, inPart('succeeded'));
  expect(at.troubles.filter((told) => told.includes('has taken 400000 of 1000000'))).toHaveLength(1);
});

test('of one that was taken whole nothing is told', async () => {
  const id = await sent(YEARS);
  await lookAfter(MINUTE, inPart('succeeded', '1000000'));
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
  expect(at.troubles.filter((told) => told.includes('its recipient has taken'))).toEqual([]);
});

test('what another node was asked for than the one that is there is asked about a day after the request', async () => {
  const id = await sent(YEARS);
  const other = async () => ({ ...(await at.paying.node()), identity: `02${'ab'.repeat(32)}` });
  await lookAfter(DAY - MINUTE, { node: other });
  expect(await at.payout(id)).toMatchObject(GOES);
  await lookAfter(2 * MINUTE, { node: other });
  expect(await at.payout(id)).toMatchObject(HANGS);
});

test('one that had to wait before the node was asked is given the time that the node takes', async () => {
  const { id } = await at.request(lasting(3_600).request, AMOUNT);
  clock.nowMs += 60 * MINUTE - 2_000;
  await at.look();
  expect((await at.payment(id)).state).toBe('sent');
  // its invoice has expired, it is old, and the node looks for a route
  await lookAfter(12_000);
  expect(await at.payout(id)).toMatchObject(GOES);
  await lookAfter(10 * MINUTE);
  expect(await at.payout(id)).toMatchObject(HANGS);
});
