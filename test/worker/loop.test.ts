// The worker's loop: jobs that were hurried together do not stay together, because each burst of them would open as many database sessions.
import { expect, test } from 'vitest';
import { type Job, startLoop } from '../../src/worker/loop.ts';

const EVERY_MS = 40;
const ROUNDS = 12;

test('jobs of one rhythm part after they were hurried together', async () => {
  const starts = Array.from({ length: 10 }, (): number[] => []);
  const jobs = starts.map(
    (mine, index): Job => ({
      name: `job ${index}`,
      everyMs: EVERY_MS,
      urgent: true,
      run: async () => {
        mine.push(performance.now());
        return false;
      },
    }),
  );
  const loop = startLoop(jobs, (_job, error) => expect.unreachable(String(error)));
  loop.hurry();
  await expect.poll(() => starts.every((mine) => mine.length > ROUNDS)).toBe(true);
  await loop.stop();
  const last = starts.map((mine) => mine[ROUNDS] as number);
  expect(Math.max(...last) - Math.min(...last)).toBeGreaterThan(EVERY_MS / 8);
});

test('a job without an interval runs once, and then when it is woken; only a caller that hurries it waits for it', async () => {
  const runs: boolean[] = [];
  const woken = (): number => runs.length;
  const jobs: Job[] = [
    {
      name: 'idle',
      everyMs: null,
      urgent: true,
      run: async (hurried = false) => {
        runs.push(hurried);
        return false;
      },
    },
    {
      name: 'waker',
      everyMs: null,
      urgent: false,
      run: async (_hurried, wake) => {
        wake?.('idle');
        wake?.('nobody of this name');
        return false;
      },
    },
  ];
  const loop = startLoop(jobs, (_job, error) => expect.unreachable(String(error)));
  await expect.poll(woken).toBe(2);
  loop.wake('idle');
  await expect.poll(woken).toBe(3);
  loop.hurry('idle');
  loop.wake('idle');
  await expect.poll(woken).toBe(4);
  await loop.stop();
  expect(runs).toEqual([false, false, false, true]);
});
