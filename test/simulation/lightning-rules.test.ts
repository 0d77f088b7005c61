// Random lives of orders over Lightning in the running service: after each look they must be where the words of behaviour §3 put them, as rules.ts
// has them, and at the end the node's own balance is what the books say. `npm run simulate -- --only lightning-rules --seeds N` runs more of them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningService, openLightningService } from '../support/lightning-service.ts';
import { runLightningWalk } from './lightning-walk.ts';
import { randomOf } from './random.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 20);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
/** Our side of the node's channel at first. */
const CAPITAL_MSAT = 50n * 100_000_000_000n;

const clock = { nowMs: Date.UTC(2026, 5, 1), now: () => clock.nowMs };
let engine: SimulatedEngine;
let port: LightningPort;
let at: LightningService;
beforeAll(async () => {
  engine = await simulatedEngine(clock.now);
  port = createLnd(async () => engine.target(), { chain: 'regtest' });
  at = await openLightningService(port, clock);
});
afterAll(async () => {
  await at?.drop();
  port?.close();
  await engine?.close();
});

async function check(seed: number): Promise<void> {
  const { wrong, log } = await runLightningWalk({ engine, at, clock }, randomOf(seed));
  if (wrong.length > 0) expect.fail(`seed ${seed}:\n${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}`);
}

test.each(Array.from({ length: SEEDS }, (_, n) => FIRST + n))('seed %i: orders are where the rules put them', check, 60_000);

test('and the books are what the node has', async () => {
  while (await at.compare());
  expect(await at.balance('asset:ln:BTC')).toBe((engine.node().localMsat() - CAPITAL_MSAT) / 1_000n);
  expect(await at.findings()).toEqual([]);
});
