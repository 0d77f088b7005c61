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

test('a pause of years is not over at once', async () => {
  const runs = { far: 0, near: 0 };
  const job = (name: keyof typeof runs, everyMs: number): Job => ({
    name,
    everyMs: () => everyMs,
    urgent: false,
    run: async () => {
      runs[name]++;
      return false;
    },
  });
  const loop = startLoop([job('far', 10 * 365 * 86_400_000), job('near', 1)], (_job, error) => expect.unreachable(String(error)));
  await expect.poll(() => runs.near).toBeGreaterThan(30);
  await loop.stop();
  expect(runs.far).toBe(1);
});

/** A loop with a first job that ends when it is told to, and another job. */
function startWithFirst() {
  const ran: string[] = [];
  let end = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const rest = { everyMs: null, urgent: true } as const;
  const first: Job = {
    ...rest,
    name: 'first',
    isFirst: true,
    async run() {
      ran.push('first');
      await held;
      ran.push('first is over');
      throw new Error('a first look may fail');
    },
  };
  const other: Job = { ...rest, name: 'other', run: async () => ran.push('other') < 0 };
  return { ran, end, loop: startLoop([other, first], () => undefined) };
}

test('the other jobs begin when the first ones have run once, however that ended', async () => {
  const { ran, end, loop } = startWithFirst();
  loop.hurry('other');
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toEqual(['first']);
  end();
  await expect.poll(() => ran.slice(0, 3)).toEqual(['first', 'first is over', 'other']);
  await loop.stop();
});

test('a first job that hangs does not hold up the others for long', async () => {
  const { ran, end, loop } = startWithFirst();
  await expect.poll(() => ran, { timeout: 5_000 }).toEqual(['first', 'other']);
  end();
  await loop.stop();
});

test('a loop that is stopped during the first run begins no other job', async () => {
  const { ran, end, loop } = startWithFirst();
  const stopped = loop.stop();
  end();
  await stopped;
  expect(ran).toEqual(['first', 'first is over']);
});
