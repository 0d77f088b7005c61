// What a payout over Lightning is looked at for at the last moment, and before the signer is asked. On the simulated node, with a clock that the
// test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expireHeld } from '../../src/flow/lightning/payout-progress.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { clearBreakers, openBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  code,
  engine,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  status,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const stop = () => tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
/** A look, and whom the signer was asked for. @param node what the node says otherwise */
async function askedFor(node: { readonly spendable?: string; readonly freeSlots?: number } = {}): Promise<readonly string[]> {
  const asked: string[] = [];
  await at.look({
    node: async () => ({ ...(await at.paying.node()), ...node }),
    authorize: async (of) => {
      asked.push(of.payoutId);
      return at.paying.authorize(of);
    },
  });
  return asked;
}

test('the signer is not asked for one that would not be committed: it would count for its limits', async () => {
  const first = await at.request(invoice('hold').request, AMOUNT);
  expect(await askedFor()).toEqual([first.id]);
  const { id } = await at.request(invoice().request, AMOUNT);
  await stop();
  expect(await askedFor()).toEqual([]);
  await clearBreakers(at.ctx.db, 'test', clock.nowMs);
  pass(16_000);
  expect(await askedFor({ spendable: '2500' })).toEqual([]);
  pass(16_000);
  expect(await askedFor({ freeSlots: 2 })).toEqual([]);
  expect(await at.payment(id)).toMatchObject({ state: 'waiting', sends: 0 });
  pass(16_000);
  expect(await askedFor({ freeSlots: 3 })).toEqual([id]);
  expect(await status(id)).toBe('completed');
});

test('one that was cancelled since it was found expired stays cancelled, and is in no way of another', async () => {
  const ids = [(await at.request(invoice().request, AMOUNT)).id, (await at.request(invoice().request, AMOUNT)).id];
  await stop();
  await createHeldPayouts(at.ctx, () => undefined).run();
  const { db } = at.ctx;
  const [cancelled, other] = ids as [string, string];
  for (const id of ids) expect(await status(id)).toBe('pending');
  pass(61 * MINUTE);
  await expireHeld({
    ...at.ctx,
    db: {
      ...db,
      async query(asked) {
        const found = await db.query(asked as never);
        await cancelPayout(at.ctx, { merchantId: at.merchantId, payoutId: cancelled });
        return found as never;
      },
    },
  });
  expect(await at.payout(cancelled)).toMatchObject({ status: 'failed', error: 'cancelled' });
  expect(await at.payout(other)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
  expect(await at.available()).toBe(500_000n);
});

test('the node will never pay an invoice, and has forgotten what it had said of it: nothing is given back', async () => {
  const to = invoice();
  const large = invoice('hold', ((engine.node().localMsat() - 501_000n) * 1_000n) / 1_001n);
  outgoing().send(large.request, 0n, engine.node().localMsat());
  const { id } = await at.request(to.request, AMOUNT);
  const enough = { node: async () => ({ ...(await at.paying.node()), spendable: '1000000' }) };
  pass(16_000);
  await at.look(enough);
  expect((await at.payment(id)).payment_index).not.toBeNull();
  pass(16_000);
  await at.look({
    ...enough,
    async send() {
      // a payment of somebody else has a higher number: how many it knows does not show it
      outgoing().resolve(large.hash, false);
      outgoing().send(invoice().request, 0n, engine.node().localMsat());
      outgoing().forget(to.hash);
      return { state: 'never', reason: 'invoice expired' };
    },
  });
  expect(await status(id)).toBe('processing');
  await looks(1, 61_000);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
});

test('the lock of a payment hash, which strangers choose, is none of those that processes hold', async () => {
  const to = invoice();
  const lock = at.ctx.db.sessionLock(`payment hash ${to.hash}`);
  expect(await lock.acquire()).toBe(true);
  expect(await code(at.request(to.request, AMOUNT))).toBe('accepted');
  await lock.release();
});
