// Another Lightning node in the place of the one that was asked to pay: it has never heard of the payment, and that says nothing about it. On
// two simulated nodes, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LightningPayer } from '../../src/core/lightning/payer.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { AMOUNT, at, clock, close, invoice, looks, MINUTE, open, outgoing, pass, status, unheard } from './funded-payouts.ts';

let stranger: SimulatedEngine;
let isReplaced = false;

beforeEach(async () => {
  isReplaced = false;
  stranger = await simulatedEngine(clock.now);
  const other = createLndPayer(async () => stranger.payTarget());
  await open({}, (own): LightningPayer => {
    const now = (): LightningPayer => (isReplaced ? other : own);
    return {
      node: () => now().node(),
      identity: () => now().identity(),
      decode: (request) => now().decode(request),
      send: (order) => now().send(order),
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
