// Whose turn it is where something is computed for all merchants.
import { expect, test } from 'vitest';
import { fairTurns } from '../../src/outside/outbound/turns.ts';

const [A, B, C] = [1n, 2n, 3n];

/** An event loop whose clock goes on only by what is done. */
function loop() {
  let [nowMs, cpuMs] = [1_000, 70_000];
  const coming: (() => void)[] = [];
  let follows: () => void = () => undefined;
  const [done, faults]: [bigint[], unknown[]] = [[], []];
  const turns = fairTurns({ nowMs: () => nowMs, cpuMs: () => cpuMs }, (step) => void coming.push(step));
  /** @param ofThat how much of it was computed with */
  function pass(ms: number, ofThat = ms): void {
    nowMs += ms;
    cpuMs += ofThat;
  }
  /** @param then what follows from it at once, when it has returned */
  function take(whom: bigint, ms: number, then: () => void = () => undefined): void {
    turns.take(whom, () => {
      done.push(whom);
      pass(ms);
      follows = then;
    });
  }
  /** What was given to do before it. @returns for whom something was done */
  function once(): readonly bigint[] {
    const before = done.length;
    for (const step of coming.splice(0)) {
      try {
        step();
      } catch (fault) {
        faults.push(fault);
      }
      const following = follows;
      follows = () => undefined;
      following();
    }
    return done.slice(before);
  }
  function untilIdle(): readonly bigint[] {
    while (coming.length > 0) once();
    return done;
  }
  return { turns, take, once, untilIdle, pass, done, faults, waits: () => coming.length > 0 };
}

/** How often he had his turn. */
const timesOf = (done: readonly bigint[], whom: bigint): number => done.filter((one) => one === whom).length;

test('a piece is done once the event loop has come round, for each in the order in which it was given', () => {
  const { turns, once, waits } = loop();
  const said: string[] = [];
  for (const word of ['one', 'two', 'three']) turns.take(A, () => said.push(word));
  expect(said).toEqual([]);
  once();
  expect(said).toEqual(['one', 'two', 'three']);
  expect(waits()).toBe(false);
});

test('who comes next waits for the piece that is under way, not for what others want besides', () => {
  const { take, once, untilIdle } = loop();
  for (let n = 0; n < 50; n++) take(A, 2.5);
  expect(once()).toEqual([A]);
  take(B, 2.5);
  expect(once()).toEqual([B]);
  take(C, 0.1);
  take(B, 2.5);
  // C has taken nothing, B one piece, A one piece
  expect(once().slice(0, 2)).toEqual([C, A]);
  expect(timesOf(untilIdle(), A)).toBe(50);
});

test('those who always want more have the same time each, whatever their pieces are', () => {
  const { take, once, done } = loop();
  for (let n = 0; n < 400; n++)
    for (const [whom, ms] of [
      [A, 4],
      [B, 1],
      [C, 0.5],
    ] as const)
      take(whom, ms);
  while (done.length < 260) once();
  const times = [timesOf(done, A) * 4, timesOf(done, B), timesOf(done, C) * 0.5];
  for (const ms of times) expect(Math.abs(ms - (times[0] as number))).toBeLessThanOrEqual(4);
});

test('what follows from a piece at once is part of it', () => {
  const { take, untilIdle, pass } = loop();
  for (let n = 0; n < 4; n++) take(A, 0, () => pass(3));
  for (let n = 0; n < 4; n++) take(B, 1);
  expect(untilIdle()).toEqual([A, B, B, B, A, B, A, A]);
});

test('what passes until the loop comes round again counts for nobody', () => {
  const { take, once, pass } = loop();
  take(A, 0.5);
  once();
  pass(5_000);
  take(B, 0.75);
  once();
  take(B, 0.1);
  take(A, 0.1);
  expect(once()).toEqual([A, B]);
});

test('whoever took nothing for long is before the others for 20 ms', () => {
  const { take, once, untilIdle } = loop();
  for (let n = 0; n < 500; n++) take(A, 2);
  untilIdle();
  for (let n = 0; n < 40; n++) take(A, 1);
  for (let n = 0; n < 40; n++) take(B, 1);
  const seen: bigint[] = [];
  while (seen.length < 30) seen.push(...once());
  // A has taken his last 2 ms too
  expect(seen.indexOf(A)).toBe(22);
  expect(Math.abs(timesOf(seen.slice(22), A) - timesOf(seen.slice(22), B))).toBeLessThanOrEqual(1);
});

test('of the time in which the machine did something else four milliseconds count', () => {
  const { take, untilIdle, done, pass } = loop();
  take(A, 6, () => pass(3_600_000, 0));
  untilIdle();
  done.splice(0);
  take(A, 1);
  for (let n = 0; n < 200; n++) take(B, 1);
  expect(untilIdle().indexOf(A)).toBe(10);
});

test('a short piece counts for as long as it took, whatever its CPU is said to be', () => {
  const { take, untilIdle, done, pass } = loop();
  take(A, 0, () => pass(4, 0));
  take(B, 0, () => pass(1, 4));
  untilIdle();
  done.splice(0);
  take(A, 1);
  for (let n = 0; n < 200; n++) take(B, 1);
  expect(untilIdle().indexOf(A)).toBe(3);
});

test('after two milliseconds, or 64 pieces, what has come meanwhile is heard', () => {
  const { take, once } = loop();
  for (let n = 0; n < 8; n++) take(A, 0.6);
  expect(once()).toHaveLength(4);
  expect(once()).toHaveLength(4);
  expect(once()).toHaveLength(0);
  for (let n = 0; n < 3; n++) take(A, 1);
  expect([once(), once()]).toEqual([[A, A], [A]]);
  for (let n = 0; n < 150; n++) take(A, 0);
  expect([once(), once(), once()].map(({ length }) => length)).toEqual([64, 64, 22]);
});

test('what is wanted while the others have their turn comes after them', () => {
  const { turns, take, once, waits } = loop();
  const said: string[] = [];
  turns.take(A, () => {
    said.push('first');
    turns.take(A, () => said.push('third'));
  });
  turns.take(A, () => said.push('second'));
  once();
  expect(said).toEqual(['first', 'second']);
  once();
  expect(said).toEqual(['first', 'second', 'third']);
  while (waits()) once();
  take(B, 1);
  expect(once()).toEqual([B]);
});

test('what has begun for a merchant comes before what has not, and before nobody else', () => {
  const { turns, take, untilIdle } = loop();
  const said: string[] = [];
  for (const word of ['first', 'second'])
    turns.begin(A, () => {
      said.push(word);
      turns.take(A, () => said.push(`${word} goes on`));
    });
  take(B, 1);
  for (const word of ['begun before', 'too', 'as well']) turns.take(A, () => said.push(word));
  expect(untilIdle()).toEqual([B]);
  expect(said).toEqual(['begun before', 'too', 'as well', 'first', 'first goes on', 'second', 'second goes on']);
});

test('what has not begun has its turn among the merchants as anything has', () => {
  const { turns, take, once, pass } = loop();
  const done: string[] = [];
  for (let n = 0; n < 3; n++)
    turns.begin(A, () => {
      done.push('A');
      pass(2);
    });
  expect([once(), done]).toEqual([[], ['A']]);
  take(B, 2);
  expect(once()).toEqual([B]);
  expect([once(), done]).toEqual([[], ['A', 'A']]);
});

test('a piece that fails ends no other one, and counts', () => {
  const { turns, take, once, pass, faults } = loop();
  turns.take(A, () => {
    pass(5);
    throw new Error('its own fault');
  });
  take(A, 0.1);
  take(B, 0.1);
  expect([once(), once()]).toEqual([[], [B, A]]);
  expect(faults).toEqual([new Error('its own fault')]);
});

test.each([
  ['is known', 9_999, [B, A]],
  ['is forgotten', 10_000, [A, B]],
] as const)('whoever has taken something longest ago %s after %i others', (_, others, order) => {
  const { take, untilIdle, done } = loop();
  take(A, 10);
  untilIdle();
  for (let n = 0; n < others; n++) {
    take(BigInt(10 + n), 0);
    untilIdle();
  }
  done.splice(0);
  take(A, 0);
  take(B, 0);
  expect(untilIdle()).toEqual(order);
});

test('whoever has taken something since is not forgotten before the others', () => {
  const { take, untilIdle, done } = loop();
  function others(first: number, count: number): void {
    for (let n = 0; n < count; n++) {
      take(BigInt(first + n), 0);
      untilIdle();
    }
  }
  take(A, 10);
  others(10, 5_000);
  take(A, 0);
  others(10_000, 6_000);
  done.splice(0);
  take(A, 0);
  take(B, 0);
  expect(untilIdle()).toEqual([B, A]);
});
