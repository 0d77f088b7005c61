// Payments in and out, in an order that nobody chose, while answers are lost, payments are refused, workers are killed and node and watcher are
// started again: each arrives once or not at all, and the books are the node's own lists and its own balance. LIGHTNING_WALK=200 walks further.
import { expect, test } from 'vitest';
import { openSimulatedPayouts } from '../support/lightning-payouts.ts';
import { walk } from '../support/lightning-walk.ts';

const CAPITAL_MSAT = 50n * 100_000_000_000n;

test('a random walk ends with books that are the lists of the node', { timeout: 400_000 }, async () => {
  const clock = { nowMs: Date.now(), now: () => clock.nowMs };
  const { engine, at, close } = await openSimulatedPayouts(clock);
  const calm = () => engine.node().setTrouble({ down: false, fault: null, left: null });
  const fault = (name: 'lose_answers' | 'reject') => () => engine.node().setTrouble({ down: false, fault: name, left: 2 });
  const walked = await walk({
    engine,
    at,
    pass: (ms) => {
      clock.nowMs += ms;
    },
    seed: 1,
    payments: Number(process.env.LIGHTNING_WALK ?? 60),
    troubles: [
      fault('lose_answers'),
      fault('lose_answers'),
      fault('reject'),
      () => engine.node().setTrouble({ down: true, fault: null, left: null }),
      calm,
      () => engine.restart(),
    ],
    calm,
  });
  const { hung, isClosed, ...others } = walked;
  expect([hung, isClosed]).toEqual([0, false]);
  for (const count of Object.values(others)) expect(count, JSON.stringify(walked)).toBeGreaterThan(0);
  const kept = (engine.node().localMsat() - CAPITAL_MSAT) / 1_000n;
  expect((await at.balance('asset:ln:BTC')) + (await at.balance('asset:ln:BTC:outbound'))).toBe(kept);
  await close();
});
