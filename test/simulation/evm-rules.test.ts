// Random lives of single orders in ether and USDT in the running service: after each step it must be where the words of behaviour §3 put it, as
// rules.ts has them. `npm run simulate -- --only evm-rules --seeds N` runs more of them.
import { afterAll, expect, test } from 'vitest';
import { runEvmWalk } from './evm-moves.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { randomOf } from './random.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 20);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
/** Seeds that share one service. */
const IN_A_WORLD = 40;

let service: EvmService | null = null;
let used = 0;
afterAll(() => service?.close());

async function check(seed: number): Promise<void> {
  if (service === null || used++ >= IN_A_WORLD) {
    await service?.close();
    service = await openEvmService({ feeBps: seed % 2 === 0 ? 75 : 0 });
    used = 1;
  }
  const { wrong, log } = await runEvmWalk(service, randomOf(seed));
  if (wrong.length === 0) return;
  await service.close(); // what went wrong must not spoil the next seed
  service = null;
  expect.fail(`seed ${seed}:\n${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}`);
}

test.each(Array.from({ length: SEEDS }, (_, n) => FIRST + n))('seed %i: an order is where the rules put it', check, 60_000);
