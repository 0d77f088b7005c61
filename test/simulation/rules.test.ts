// Random lives of single orders in the running service: after each step it must be where the words of behaviour §3 put it, as rules.ts has them.
// `npm run simulate -- --only rules --seeds N` runs more of them.
import { afterAll, expect, test } from 'vitest';
import { randomOf } from './random.ts';
import { runWalk } from './rule-moves.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 30);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
/** Seeds that share one service. */
const IN_A_WORLD = 60;

let service: SimulatedService | null = null;
let used = 0;
afterAll(() => service?.close());

async function check(seed: number): Promise<void> {
  if (service === null || used++ >= IN_A_WORLD) {
    await service?.close();
    service = await openSimulatedService({ feeBps: seed % 2 === 0 ? 75 : 0 });
    used = 1;
  }
  const { wrong, log } = await runWalk(service, randomOf(seed));
  if (wrong.length === 0) return;
  await service.close(); // what went wrong must not spoil the next seed
  service = null;
  expect.fail(`seed ${seed}:\n${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}`);
}

test.each(Array.from({ length: SEEDS }, (_, n) => FIRST + n))('seed %i: an order is where the rules put it', check, 60_000);
