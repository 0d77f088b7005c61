// What every round of a walk is made of: a seed for each merchant, steps beside trouble, a log, and the last word of the audit.
import { setTimeout as delay } from 'node:timers/promises';
import { runCli } from '../cli/run.ts';
import { type Random, randomOf } from '../simulation/random.ts';
import type { Merchant, Scene } from './customers.ts';
import { step } from './moves.ts';
import { trouble, type World } from './trouble.ts';

/** What is wrong in the end, and what happened. */
export type Outcome = { readonly wrong: readonly string[]; readonly log: readonly string[] };

export function openRound(scene: Scene, first: number, processes: Pick<World, 'service' | 'second'>) {
  const log: string[] = [];
  const wrong: string[] = [];
  const began = performance.now();
  const note = (text: string): void => void log.push(`${((performance.now() - began) / 1_000).toFixed(1)} s ${text}`);
  const random: Random = randomOf(first * 1_000_003);
  const world: World = { base: scene.base, ...processes, random, note };
  for (const [at, merchant] of scene.merchants.entries()) {
    merchant.random = randomOf(first + at);
    merchant.log.length = 0;
  }
  async function all(move: (merchant: Merchant) => Promise<void>): Promise<void> {
    const noted = (merchant: Merchant) =>
      move(merchant).catch((error: unknown) => void wrong.push(`${merchant.name}: ${String(error)}`));
    await Promise.all(scene.merchants.map(noted));
  }
  return {
    random,
    world,
    note,
    wrong,
    /** A move of every merchant at once; what it throws is wrong. */
    all,
    /** One step of every merchant, beside a few kinds of trouble. */
    async step(at: number): Promise<void> {
      note(`step ${at}`);
      const moves = all((merchant) => step(scene, merchant));
      for (let events = random.whole(2, 4); events > 0; events--) {
        await delay(random.whole(0, 150));
        await trouble(world);
      }
      await moves;
    },
    /** Nothing may be red; a round that was right is the beginning of the next. */
    async end(folder: string): Promise<Outcome> {
      const { out } = await runCli(['audit'], { BURSAR_DATA_DIR: folder });
      wrong.push(...out.split('\n').filter((line) => /^(red|stopped)/.test(line)));
      if (!out.includes('INV-12')) wrong.push(`the audit says: ${out}`);
      if (wrong.length === 0) for (const { model } of scene.merchants) model.close(scene.prices);
      const isNamed = ({ name }: Merchant) => wrong.some((one) => one.startsWith(`${name} `) || one.startsWith(`${name}:`));
      const named = scene.merchants.filter(isNamed);
      return { wrong, log: [...log, ...named.flatMap((one) => [`${one.name}:`, ...one.log.map((line) => `    ${line}`)])] };
    },
  };
}
export type Round = ReturnType<typeof openRound>;
