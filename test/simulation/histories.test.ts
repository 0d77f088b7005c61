// Random chain histories against a model that knows nothing of the product's rules: at rest the ledger equals the chain, every path of
// statuses is in the table, and nothing waits. `npm run simulate -- --seeds N` runs more of them; seeds that ever failed are in seeds.txt.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { HISTORIES_IN_A_SEED, runSeed } from './history.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 20);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
/** Seeds that share one service: its chains and its database continue, as those of a real service do. */
const IN_A_WORLD = 5;

const failedOnce = readFileSync(join(import.meta.dirname, 'seeds.txt'), 'utf8')
  .split('\n')
  .map((line) => line.replace(/#.*/, '').trim())
  .filter((line) => line !== '')
  .map(Number);

let service: SimulatedService | null = null;
let used = 0;
async function serviceFor(seed: number): Promise<SimulatedService> {
  if (service !== null && used++ < IN_A_WORLD) return service;
  await service?.close();
  used = 1;
  service = await openSimulatedService({ feeBps: seed % 2 === 0 ? 75 : 0 });
  return service;
}
afterAll(() => service?.close());

async function check(seed: number): Promise<void> {
  const { wrong, log } = await runSeed(await serviceFor(seed), seed);
  if (wrong.length === 0) return;
  await service?.close(); // what went wrong must not spoil the next seed
  service = null;
  expect.fail(`seed ${seed}:\n${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}`);
}

if (process.env.SIMULATION_FIRST === undefined) {
  test.each(failedOnce)('seed %i, which failed once', check, 120_000);
}
test.each(Array.from({ length: SEEDS }, (_, n) => FIRST + n))(
  `seed %i: ${HISTORIES_IN_A_SEED} chain histories side by side end as the model says`,
  check,
  120_000,
);
