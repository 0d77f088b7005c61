// How long a node is asked again for what it does not say of a block.
import { expect, test } from 'vitest';
import { createPatience } from '../../src/outside/evm/patience.ts';

const block = (n: number) => ({ hash: `0x${n}`, previousHash: `0x${n - 1}` });

/** Of which time has passed already. */
function patient() {
  const clock = { ms: 1_000_000 };
  return { clock, patience: createPatience(() => clock.ms) };
}

test('a block is read without after four tries and two minutes, and not before both', () => {
  const { clock, patience } = patient();
  expect([1, 2, 3, 4, 5].map(() => patience.isOver(block(7)))).toEqual(Array(5).fill(false));
  clock.ms += 119_999;
  expect(patience.isOver(block(7))).toBe(false);
  clock.ms += 1;
  expect(patience.isOver(block(7))).toBe(true);
  expect(patience.isOver(block(9))).toBe(false);
  clock.ms += 120_000;
  expect([2, 3, 4].map(() => patience.isOver(block(9)))).toEqual([false, false, true]);
});

test('one that follows such a block is read without at once, until that block was answered or all is forgotten', () => {
  const { clock, patience } = patient();
  const isOver = (): boolean => {
    patience.isOver(block(7));
    clock.ms += 120_000;
    return [2, 3, 4].map(() => patience.isOver(block(7))).at(-1) as boolean;
  };
  expect([isOver(), patience.isOver(block(8)), patience.isOver(block(9)), patience.isOver(block(7))]).toEqual(
    Array(4).fill(true),
  );
  patience.answered(block(9));
  patience.answered(block(8));
  expect([patience.isOver(block(9)), patience.isOver(block(8))]).toEqual([false, true]);
  patience.clear();
  expect(patience.isOver(block(7))).toBe(false);
});

/** Blocks that do not follow each other. */
const other = (n: number) => block(10 + 2 * n);

test.each([
  { others: 999, isKnown: true },
  { others: 1_000, isKnown: false },
])('a thousand blocks are remembered: after $others others', ({ others, isKnown }) => {
  const { clock, patience } = patient();
  for (let n = 0; n < 4; n++) patience.isOver(block(1));
  for (let n = 0; n < others; n++) patience.isOver(other(n));
  clock.ms += 120_000;
  expect(patience.isOver(block(1))).toBe(isKnown);
});

test('those that have failed last are remembered', () => {
  const { clock, patience } = patient();
  for (let n = 0; n < 4; n++) patience.isOver(block(1));
  for (let n = 0; n < 4; n++) patience.isOver(other(0));
  patience.isOver(block(1));
  for (let n = 1; n < 1_000; n++) patience.isOver(other(n));
  clock.ms += 120_000;
  expect([patience.isOver(block(1)), patience.isOver(other(0))]).toEqual([true, false]);
});
