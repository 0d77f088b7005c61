// What the judge costs for a payment of thousands of outputs that was replaced again and again. `node bench/judge.ts` prints its figure.
import { judge } from '../src/core/judge/judge.ts';
import { replacedCase } from '../test/support/one-case.ts';
import { median } from './measure.ts';
import type { Figure } from './report.ts';

const OUTPUTS = 3_000;
const TIMES = 10;
const ROUNDS = 15;

/** The first verdict is reported too: a process that has just started is no slower than this. */
export function judgeReplaced(): Figure {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const it = replacedCase(OUTPUTS, TIMES);
    const began = process.threadCpuUsage();
    judge(it);
    const { user, system } = process.threadCpuUsage(began);
    times.push((user + system) / 1000);
  }
  const middle = median(times, (one) => one);
  return {
    work: `judge: ${OUTPUTS.toLocaleString('en')} outputs replaced ${TIMES} times`,
    measured: `${middle.toFixed(1)} ms of CPU, the first ${(times[0] ?? 0).toFixed(1)} ms`,
    goal: '≤ 300 ms',
  };
}

if (import.meta.main) {
  const { work, measured, goal } = judgeReplaced();
  console.log(`${work}: ${measured} (goal ${goal})`);
}
