// The sandbox's clock is one for all processes: what one moved, every other sees at its next look, and a restart keeps it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openMovableClock, systemClock } from '../../src/outside/clock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-clock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function nextMillisecond(): Promise<void> {
  const now = Date.now();
  while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
}

test('a clock that nobody moved has the system’s time', () => {
  const clock = openMovableClock(join(folder, 'offset'));
  expect(Math.abs(clock.now() - Date.now())).toBeLessThan(50);
  expect([clock.movedMs?.(), systemClock.movedMs?.()]).toEqual([0, 0]);
  clock.close();
});

test('a move is seen by whoever has the file open already, and by whoever opens it later', async () => {
  const one = openMovableClock(join(folder, 'offset'));
  const other = openMovableClock(join(folder, 'offset'));
  other.now();
  one.advance(86_400_000);
  one.advance(1_000);
  await nextMillisecond();
  const later = openMovableClock(join(folder, 'offset'));
  for (const clock of [one, other, later]) {
    expect(Math.abs(clock.now() - Date.now() - 86_401_000)).toBeLessThan(50);
    expect(clock.movedMs?.()).toBe(86_401_000);
    clock.close();
  }
});

test('time is never moved back', () => {
  const clock = openMovableClock(join(folder, 'offset'));
  expect(() => clock.advance(-1)).toThrow('zero or more');
  expect(() => clock.advance(0.5)).toThrow('whole number');
  clock.close();
});

test('the steady clock is moved forward with the time, and shows when the system’s clock was set', async () => {
  const clock = openMovableClock(join(folder, 'offset'));
  const look = () => ({ now: clock.now(), steady: clock.steady?.() ?? Number.NaN });
  const before = look();
  clock.advance(86_400_000);
  await nextMillisecond();
  const after = look();
  expect(after.steady - before.steady).toBeGreaterThanOrEqual(86_400_000);
  expect(Math.abs(after.now - before.now - (after.steady - before.steady))).toBeLessThan(50);
  clock.close();
});
