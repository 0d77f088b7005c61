// What the supervisor does with a process that dies again and again.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Child, type ChildOptions, startChild } from '../../src/main/process/child.ts';
import { eventually } from '../support/service.ts';

const children: Child[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map((one) => one.stop(1_000)));
});

/** A process of this kind, and what the supervisor told of it. */
async function processOf(kind: Pick<ChildOptions, 'isSpared'>, environment: Readonly<Record<string, string>> = {}) {
  const restarts: string[] = [];
  const givenUp: string[] = [];
  const child = startChild({
    name: 'api',
    entry: '../../test/start/dying-process.ts',
    environment: () => ({ PATH: process.env.PATH, ...environment }),
    onRestart: (line) => restarts.push(line),
    onGiveUp: (line) => givenUp.push(line),
    isExcused: () => false,
    onChange: () => undefined,
    ...kind,
  });
  children.push(child);
  child.begin({});
  await child.ready;
  const pid = (): number => Number.parseInt(child.identity() ?? '0', 10);
  async function kill(): Promise<void> {
    const killed = await eventually('it lives', () => pid() || null);
    process.kill(killed, 'SIGKILL');
    await eventually('it is dead', () => pid() !== killed);
  }
  return { child, pid, kill, restarts, givenUp };
}

test('one that the others can do without is started again after its sixth death too, later each time, and that is told once', async () => {
  const { pid, kill, restarts, givenUp } = await processOf({ isSpared: true });
  for (let n = 0; n < 6; n++) await kill();
  const before = performance.now();
  await eventually('it lives again', () => pid() > 0);
  expect(performance.now() - before).toBeGreaterThan(900);
  await kill();
  const again = performance.now();
  await eventually('it lives again', () => pid() > 0);
  expect(performance.now() - again).toBeGreaterThan(1_900);
  expect(givenUp).toEqual([]);
  expect(restarts.filter((line) => line.startsWith('problem: '))).toEqual([
    'problem: api died 6 times within a minute (last: SIGKILL); from now on it is started again after pauses, and the others go on without it',
  ]);
  expect(restarts.filter((line) => line === 'api died (SIGKILL); starting it again')).toHaveLength(7);
}, 30_000);

test('one that the others need is given up with its sixth death within a minute', async () => {
  const { kill, pid, givenUp } = await processOf({});
  for (let n = 0; n < 6; n++) await kill();
  // it is dead a moment before the supervisor hears of it
  await eventually('it is given up', () => givenUp.length > 0);
  expect(givenUp).toEqual(['api died 6 times within a minute (last: SIGKILL)']);
  expect(pid()).toBe(0);
}, 30_000);

test('one that cannot start because the database is away is started again after pauses until it is back, however often', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-child-'));
  const gone = join(folder, 'gone');
  try {
    const { kill, pid, restarts, givenUp } = await processOf({}, { DATABASE_GONE: gone });
    for (let n = 0; n < 4; n++) {
      await kill();
      await eventually('it lives', () => pid() || null);
    }
    writeFileSync(gone, '');
    await kill();
    const waits = () => restarts.filter((line) => line.startsWith('api waits for the database ('));
    await eventually('it has waited twice', () => waits().length >= 2);
    rmSync(gone);
    expect(waits()[0]).toMatch(/127\.0\.0\.1:1\/none cannot be reached: .*ECONNREFUSED.*; starting it again$/);
    expect(givenUp).toEqual([]);
    // its own deaths still count: the next is the sixth
    await eventually('it lives', () => pid() || null);
    await kill();
    await eventually('it is given up', () => givenUp.length > 0);
    expect(givenUp).toEqual(['api died 6 times within a minute (last: SIGKILL)']);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
