// Of very many transactions a node is asked about some in each pass: new ones first, and each of the others in its turn.
import { expect, test } from 'vitest';
import { createNodeQueryRotation } from '../../../src/worker/chain/node-query-rotation.ts';

test('new ones come first, then those that were asked about longest ago; each has its turn', () => {
  const inTurn = createNodeQueryRotation(3);
  expect(inTurn.next(['a', 'b'])).toEqual(['a', 'b']);
  expect(inTurn.next(['a', 'b', 'c', 'd'])).toEqual(['c', 'd', 'a']);
  expect(inTurn.next(['a', 'b', 'c', 'd'])).toEqual(['b', 'c', 'd']);
  expect(inTurn.next(['a', 'b', 'c', 'd', 'e'])).toEqual(['e', 'a', 'b']);
  expect(inTurn.next(['d', 'e'])).toEqual(['d', 'e']);
  // one that was forgotten is new
  expect(inTurn.next(['a', 'b', 'd', 'e'])).toEqual(['a', 'b', 'd']);
});

test('of thousands no pass asks about more than some hundreds', () => {
  const inTurn = createNodeQueryRotation();
  const all = Array.from({ length: 3_000 }, (_, n) => `${n}`);
  const passes = Array.from({ length: 6 }, () => inTurn.next(all));
  expect(passes.map((pass) => pass.length)).toEqual(Array(6).fill(500));
  expect(new Set(passes.flat()).size).toBe(3_000);
});
