// Whose turn it is: endpoints that were not met yet before the others, the newest first, and everybody once before anybody has another turn.
import { expect, test } from 'vitest';
import { NEW_PACE, type Pace, takenAtOnce } from '../../../src/worker/deliveries/pace.ts';
import { createTurns, type Known } from '../../../src/worker/deliveries/turns.ts';

const NOW = Date.UTC(2026, 5, 1);
const numbers = (from: number, to: number): bigint[] => Array.from({ length: to - from + 1 }, (_, n) => BigInt(from + n));
const known = (of: readonly bigint[], pace: Pace = NEW_PACE, queued = 0) =>
  new Map(of.map((number) => [number, { pace, queue: Array.from({ length: queued }, () => 0) }]));

test('endpoints that were not met come first, the newest before the others, and leave half of a turn to those that were', () => {
  const due = numbers(1, 1_000);
  const met = known(numbers(1, 400));
  const turns = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  const { chosen, areLeft } = turns.choose(due, met, NOW);
  expect(chosen).toEqual([...numbers(873, 1_000).reverse(), ...numbers(1, 128)]);
  expect(areLeft).toBe(true);
  const few = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose(due, known(numbers(1, 990)), NOW);
  expect(few.chosen).toEqual([...numbers(991, 1_000).reverse(), ...numbers(1, 246)]);
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose(due, known([]), NOW).chosen).toEqual(
    numbers(745, 1_000).reverse(),
  );
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose(due, known([7n]), NOW).chosen).toEqual([
    ...numbers(746, 1_000).reverse(),
    7n,
  ]);
});

test('endpoints that are gone, which nobody ever meets, have their turn one after the other too', () => {
  const due = numbers(1, 600);
  const turns = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  const chosen = [1, 2, 3, 4].map(() => turns.choose(due, known([]), NOW).chosen);
  expect(chosen.flat()).toEqual(numbers(1, 600).reverse());
  expect(chosen[3]).toEqual([]);
  turns.begin();
  expect(turns.choose(due, known([]), NOW)).toMatchObject({ chosen: numbers(345, 600).reverse(), areLeft: true });
});

test('all others have their turn one after the other, and nobody a second one before the next look', () => {
  const due = numbers(1, 600);
  const met = known(due);
  const turns = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  const [first, second, third] = [1, 2, 3].map(() => turns.choose(due, met, NOW));
  expect([first?.chosen, second?.chosen, third?.chosen]).toEqual([
    numbers(1, 256),
    numbers(257, 512),
    [...numbers(513, 600), ...numbers(1, 168)],
  ]);
  expect([first?.areLeft, second?.areLeft, third?.areLeft]).toEqual([true, true, false]);
  turns.begin();
  const next = turns.choose(due, met, NOW);
  expect([next.chosen, next.areLeft]).toEqual([numbers(169, 424), true]);
  // as many as there are, exactly
  expect(
    createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose(numbers(1, 256), known(numbers(1, 256)), NOW).areLeft,
  ).toBe(false);
});

test('the last one that is left has its turn before the next look, and then it is over', () => {
  const one = numbers(1, 257);
  const turns = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  expect(turns.choose(one, known(one), NOW).areLeft).toBe(true);
  turns.begin();
  expect(turns.choose(one, known(one), NOW).areLeft).toBe(true);
  const twice = numbers(1, 512);
  const others = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  expect([1, 2].map(() => others.choose(twice, known(twice), NOW).areLeft)).toEqual([true, false]);
});

test('after the last the first has its turn again', () => {
  const due = numbers(1, 200);
  const turns = createTurns<Known>(({ pace }) => takenAtOnce(pace, 50));
  turns.choose(due, known(due), NOW);
  turns.begin();
  expect(turns.choose(due, known(due), NOW).chosen).toEqual(due);
});

test('nobody has a turn who rests or has enough to begin', () => {
  const resting: Pace = { ...NEW_PACE, limit: 1, restsUntilMs: NOW + 700, timesAway: 5 };
  const quick: Pace = { ...NEW_PACE, limit: 8 };
  const met = new Map([
    ...known([1n], resting),
    ...known([2n], { ...resting, restsUntilMs: NOW + 900 }),
    ...known([3n], NEW_PACE, 1),
    ...known([4n], NEW_PACE),
    ...known([5n], quick, 8),
    ...known([6n], quick, 7),
  ]);
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose(numbers(1, 6), met, NOW)).toEqual({
    chosen: [4n, 6n],
    areLeft: false,
    restMs: 700,
  });
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose([4n], met, NOW).restMs).toBe(Number.POSITIVE_INFINITY);
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose([1n], met, NOW + 700).chosen).toEqual([1n]);
  expect(createTurns<Known>(({ pace }) => takenAtOnce(pace, 50)).choose([1n], met, NOW + 699)).toEqual({
    chosen: [],
    areLeft: false,
    restMs: 1,
  });
});
