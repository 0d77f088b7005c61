// What a block costs the collector when its outputs were made to fall into one slot of a hash table without a key. `node bench/flood.ts`
// prints its figure.

import { createCollector } from '../src/worker/rescan/block-collector.ts';
import { collidingScripts, randomScripts } from '../test/support/colliding-scripts.ts';
import { median } from './measure.ts';
import type { Figure } from './report.ts';

const OUTPUTS = 60_000;
const ROUNDS = 9;

export function collectFlood(outputs = OUTPUTS): Figure {
  const kinds = [collidingScripts(outputs), randomScripts(outputs)] as const;
  const took: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [kind, scripts] of kinds.entries()) {
      const { watch } = createCollector();
      const began = process.threadCpuUsage();
      for (const script of scripts) watch.hasScript(script, 0, script.length);
      const { user, system } = process.threadCpuUsage(began);
      (took[kind] as number[]).push((user + system) / 1000);
    }
  }
  const [colliding, others] = took.map((times) => median(times, (one) => one)) as [number, number];
  return {
    work: `collector: ${outputs.toLocaleString('en')} scripts made to collide`,
    measured: `${colliding.toFixed(1)} ms of CPU, ${others.toFixed(1)} ms for as many others`,
    goal: 'the same',
  };
}

if (import.meta.main) {
  const { work, measured, goal } = collectFlood();
  console.log(`${work}: ${measured} (goal: ${goal})`);
}
