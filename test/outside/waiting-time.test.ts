// How long calls of one server have waited for their turns.
import { expect, test } from 'vitest';
import { waitingTime } from '../../src/outside/outbound/waiting-time.ts';

test('what waits at the same time counts once, and what waits now counts so far', () => {
  let nowMs = 100;
  const waited = waitingTime(() => nowMs);
  const done: string[] = [];
  expect(waited.ms()).toBe(0);
  const first = waited.counted(() => done.push('first'));
  nowMs += 5;
  const second = waited.counted(() => done.push('second'));
  nowMs += 7;
  expect([waited.ms(), done]).toEqual([12, []]);
  first();
  nowMs += 3;
  expect(waited.ms()).toBe(15);
  second();
  nowMs += 1_000;
  expect([waited.ms(), done]).toEqual([15, ['first', 'second']]);
  waited.counted(() => done.push('third'))();
  expect([waited.ms(), done.at(-1)]).toEqual([15, 'third']);
});
