// The rounds of a walk as tests: as many as its seeds need, in one service, which is closed after a round that was wrong.
import { afterAll, expect, test } from 'vitest';
import type { Service } from '../support/service.ts';
import type { Scene } from './customers.ts';
import type { Outcome } from './round.ts';

const TIMEOUT = 900_000;
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);

export type Opened = { readonly scene: Scene; readonly service: () => Service; close(): Promise<void> };

/** @param walk one round, from its first seed on; `seeds`: as many unless SIMULATION_SEEDS says another number */
export function testRounds<T extends Opened>(
  says: string,
  {
    open,
    walk,
    seeds,
    atOnce,
  }: {
    readonly open: () => Promise<T>;
    readonly walk: (opened: T, first: number) => Promise<Outcome>;
    readonly seeds: number;
    readonly atOnce: number;
  },
): void {
  const all = Number(process.env.SIMULATION_SEEDS ?? seeds);
  let opened: T | null = null;
  async function close(): Promise<void> {
    const last = opened;
    opened = null;
    await last?.close();
  }
  afterAll(close, TIMEOUT);

  test.each(Array.from({ length: Math.ceil(all / atOnce) }, (_, round) => FIRST + round * atOnce))(
    `seeds from %i: ${says}`,
    async (first) => {
      opened ??= await open();
      const { wrong, log } = await walk(opened, first).catch((error: Error) => ({ wrong: [String(error.stack)], log: [] }));
      if (wrong.length === 0) return;
      const problems = await fetch(`${opened.scene.base()}/readyz`).then((answer) => answer.text(), String);
      const output = `${problems}\n${opened.service().output()}`;
      await close();
      expect.fail(`${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}\n\n${output.slice(-8_000)}`);
    },
    TIMEOUT,
  );
}
