// A service on a database and a simulated Lightning node of its own for each test, with a clock that the test moves.
import { afterEach, beforeEach } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningService, openLightningService } from '../support/lightning-service.ts';

export const MINUTE = 60_000;
export const clock = { nowMs: 0, now: () => clock.nowMs };
export let engine: SimulatedEngine;
export let port: LightningPort;
export let service: LightningService;

/** Registers the hooks; `engine`, `port` and `service` belong to the running test. */
export function eachWithSimulatedNode(): void {
  beforeEach(async () => {
    clock.nowMs = Date.UTC(2026, 5, 1);
    engine = await simulatedEngine(clock.now);
    port = createLnd(async () => engine.target(), { chain: 'regtest' });
    service = await openLightningService(port, clock);
  });
  afterEach(async () => {
    await service.drop();
    port.close();
    await engine.close();
  });
}

/** So much later, with a price that is new. */
export const pass = async (ms: number): Promise<void> => {
  clock.nowMs += ms;
  await service.rate('100000.00');
};
/** The payer's wallet pays this much more than was asked for. */
export const pay = async (transactionId: string, more = 0n) => {
  const hash = await service.hashOf(transactionId);
  const { valueMsat } = engine.node().find(hash)!;
  return engine.node().pay(hash, valueMsat + more, 1);
};
