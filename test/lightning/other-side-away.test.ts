// A node that was put back to before a request to pay shows it only once the other side of the channel has been met: until then its word ends nothing.
// On a simulated node with a clock that the test moves; test/lightning/lnd-other-side-away.test.ts has it on a real LND.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  code,
  engine,
  forced,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
} from './funded-payouts.ts';
import { bothPutBack, forgotten } from './put-back.ts';

let end: () => Promise<void> = async () => undefined;
beforeEach(() => open());
afterEach(async () => {
  await end();
  end = async () => undefined;
  await close();
});
const WAITS = { status: 'processing', heldReason: null };
const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };

const isAway = (): void => engine.node().setPeerAway(true);
/** The node is put back to before a payment of which nobody here has heard, and the other side of its channels is away. */
const forgottenAndAway = () => forgotten(isAway);

test('while the other side of a channel is away it is neither asked for again nor failed', async () => {
  const { id, hash } = await forgottenAndAway();
  await looks(3, 2 * MINUTE);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await at.payout(id)).toMatchObject(WAITS);
  expect((await at.payment(id)).trouble).toMatch(/other side of a channel is away/);
  engine.node().setPeerAway(false);
  forced(true);
  await looks(1, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  expect(outgoing().payment(hash)).toBeNull();
});

test('where it does not come back, an operator decides once the invoice has expired', async () => {
  const { id } = await forgottenAndAway();
  await looks(1, 59 * MINUTE);
  expect(await at.payout(id)).toMatchObject(WAITS);
  await looks(2, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
});

test('where it comes back and the channel is as it was, the payment is made', async () => {
  const { id, hash } = await forgottenAndAway();
  await looks(1, 2 * MINUTE);
  engine.node().setPeerAway(false);
  await looks(1, 2 * MINUTE);
  outgoing().resolve(hash, true);
  await looks(1);
  expect(await at.payout(id)).toMatchObject({ status: 'completed' });
});

test('a node that has run since an hour before the payout was requested was not put back, whoever is away', async () => {
  pass(61 * MINUTE);
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({ send: () => Promise.reject(Object.assign(new Error('no answer'), { fault: 'unreachable' })) });
  engine.node().setPeerAway(true);
  await looks(1);
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  outgoing().resolve(to.hash, false);
  await looks(1, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'failed' });
});

/** Database and node are put back to before the payment was sent, and the other side of its channels is away. */
async function bothPutBackAndAway(send: () => Promise<void>) {
  const restored = await bothPutBack(send, { meanwhile: isAway });
  end = restored.end;
  return restored;
}

test('put back together with the database, one whose invoice has expired meanwhile is not failed', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const restored = await bothPutBackAndAway(async () => {
    await at.look();
    expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  });
  pass(61 * MINUTE);
  await restored.looks(4, 6 * MINUTE);
  expect(await restored.seen(id)).toMatchObject(UNKNOWN);
  expect(outgoing().payment(to.hash)).toBeNull();
});

test('put back together with the database, one that it still holds back can neither be cancelled nor expire', async () => {
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  expect(await at.payout(id)).toMatchObject({ status: 'pending' });
  const restored = await bothPutBackAndAway(async () => {
    await clearBreakers(at.ctx.db, 'a test', clock.nowMs);
    await createHeldPayouts(at.ctx, () => undefined).run();
    await at.look();
    expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  });
  await restored.looks(1);
  const cancelled = () => code(cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId: id }));
  expect(await cancelled()).toBe('payout_not_cancellable');
  pass(61 * MINUTE);
  await restored.looks(3, 2 * MINUTE);
  expect(await cancelled()).toBe('payout_not_cancellable');
  expect((await restored.seen(id)).status).not.toBe('failed');
});

test('put back together with the database to between a first attempt, which failed, and a second one, the first does not end it', async () => {
  const [to, large] = [invoice('hold'), invoice('hold', ((engine.node().localMsat() - 501_000n) * 1_000n) / 1_001n)];
  outgoing().send(large.request, 0n, engine.node().localMsat());
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({ node: async () => ({ ...(await at.paying.node()), spendable: '1000000000' }) });
  expect(outgoing().payment(to.hash)?.status).toBe('FAILED');
  outgoing().resolve(large.hash, false);
  const restored = await bothPutBackAndAway(async () => {
    await looks(1);
    expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  });
  await restored.looks(2, 2 * MINUTE);
  expect(outgoing().payment(to.hash)?.status).toBe('FAILED');
  pass(61 * MINUTE);
  await restored.looks(2, 2 * MINUTE);
  expect(await restored.seen(id)).toMatchObject(UNKNOWN);
});
