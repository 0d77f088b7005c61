// Another Lightning node in the place of the one that was asked to pay: it has never heard of the payment, and that says nothing about it. On
// two simulated nodes, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LightningPayer } from '../../src/core/lightning/payer.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { clearBreakers, openBreakers } from '../../src/store/ledger/breakers.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  status,
  toldAfterAMinute as told,
  unheard,
} from './funded-payouts.ts';
import { bothPutBack } from './put-back.ts';

let stranger: SimulatedEngine;
let isReplaced = false;
/** How often a node was asked to pay. */
const asked = { first: 0, other: 0 };

beforeEach(async () => {
  isReplaced = false;
  Object.assign(asked, { first: 0, other: 0 });
  stranger = await simulatedEngine(clock.now);
  const other = createLndPayer(async () => stranger.payTarget());
  await open({}, (own): LightningPayer => {
    const now = (): LightningPayer => (isReplaced ? other : own);
    return {
      node: () => now().node(),
      identity: () => now().identity(),
      decode: (request) => now().decode(request),
      send(order) {
        asked[isReplaced ? 'other' : 'first']++;
        return now().send(order);
      },
      track: (hash) => now().track(hash),
      payments: (after) => now().payments(after),
      close() {
        own.close();
        other.close();
      },
    };
  });
});
afterEach(async () => {
  await close();
  await stranger.close();
});

test('only_asked_node: what another node does not know of a payment is no failure of it', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look(unheard());
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  isReplaced = true;
  await looks(3, 61 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await at.payment(id)).trouble).toMatch(/was asked to pay it, and this is node/);
  // it concerns nobody else
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  outgoing().resolve(to.hash, true);
  isReplaced = false;
  pass(2 * MINUTE);
  await at.look();
  expect(await status(id)).toBe('completed');
  expect(await at.available()).toBe(500_000n - 1_000n - ((await at.payout(id)).fee as bigint));
  expect(await at.compared()).toEqual([]);
});

test('one that was answered by the first node waits for it as well', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  isReplaced = true;
  await looks(2);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  isReplaced = false;
  outgoing().resolve(to.hash, false);
  await looks(6);
  expect(await status(id)).toBe('failed');
  expect(await at.available()).toBe(500_000n);
  expect(await at.compared()).toEqual([]);
});

test('one that is replaced during a look is noticed before the payment fails', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look(unheard());
  pass(62 * MINUTE);
  const track: typeof at.paying.track = (hash) => {
    isReplaced = true;
    return at.paying.track(hash);
  };
  await at.look({ track });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  isReplaced = false;
  outgoing().resolve(to.hash, true);
  await looks(1, 2 * MINUTE);
  expect(await status(id)).toBe('completed');
  expect(await at.compared()).toEqual([]);
});

test('one that is put back to an older state during a look is noticed before the payment fails', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look(unheard());
  pass(62 * MINUTE);
  const track: typeof at.paying.track = (hash) => {
    outgoing().forget(hash);
    return at.paying.track(hash);
  };
  await at.look({ track });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
});

const waits = { status: 'processing', heldReason: 'unknown_outcome', error: null };
const namesBoth = /was asked to pay it, and this is node/;

test('what a database that was put back does not know was paid is not asked of the node that took the place of the one that paid it, and does not fail', async () => {
  const { request } = invoice();
  const { id } = await at.request(request, AMOUNT);
  const restored = await bothPutBack(
    async () => {
      await at.look();
      expect(await status(id)).toBe('completed');
    },
    {
      putBack: async () => undefined,
      meanwhile() {
        isReplaced = true;
      },
    },
  );
  await restored.looks(3, 61 * MINUTE);
  expect(await restored.seen(id)).toMatchObject(waits);
  expect(asked).toEqual({ first: 1, other: 0 });
  isReplaced = false;
  await restored.looks(2, 2 * MINUTE);
  expect((await restored.seen(id)).status).toBe('completed');
  await restored.end();
});

test('what was authorized since another node pays is asked of that one after a start of the database', async () => {
  isReplaced = true;
  pass(MINUTE);
  await at.look();
  pass(MINUTE);
  const { request } = stranger.node().outgoing.invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour: 'pay' });
  const { id } = await at.request(request, AMOUNT);
  await at.look({}, 'ln-authorized');
  await at.admin.query(`update comparisons set timeline = 'another'`);
  await looks(20);
  expect(await status(id)).toBe('completed');
  expect(asked).toEqual({ first: 0, other: 1 });
});

test('what the first node lists as paid, and a payout asks for again, waits for that one', async () => {
  expect(await told()).toEqual([]);
  const { request } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await told();
  await clearBreakers(at.ctx.db, 'ann', clock.now());
  const { id } = await at.request(request, AMOUNT);
  isReplaced = true;
  await looks(2);
  expect(await status(id)).toBe('processing');
  expect((await at.payment(id)).trouble).toMatch(namesBoth);
  await looks(2, 61 * MINUTE);
  expect(await at.payout(id)).toMatchObject(waits);
  expect(asked.other).toBe(0);
  const resolve = (outcome: 'paid' | 'failed') =>
    resolvePayout(at.ctx, { payoutId: id, outcome, evidence: 'asked', isNodeGone: true }, at.paying.track);
  await expect(resolve('failed')).rejects.toThrow(/lists it as paid: it can only be called paid/);
  const { fee } = await resolve('paid');
  expect({ status: await status(id), fee }).toEqual({ status: 'completed', fee: 2n });
});

test('so does one whose invoice expired while payouts were stopped', async () => {
  expect(await told()).toEqual([]);
  const { request } = invoice();
  const { id } = await at.request(request, AMOUNT);
  outgoing().send(request, 0n, 10_000n);
  await told();
  isReplaced = true;
  await looks(4, 61 * MINUTE);
  expect(await at.payout(id)).toMatchObject(waits);
  isReplaced = false;
  await looks(2, 2 * MINUTE);
  expect(await status(id)).toBe('completed');
});
