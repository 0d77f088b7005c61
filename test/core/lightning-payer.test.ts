// Up to when a request to pay over Lightning that was not answered may still arrive at its node.
import { expect, test } from 'vitest';
import { mayStillArrive } from '../../src/core/lightning/payer.ts';

test('a request may arrive until a minute after its lease: so far the clock of the node may be behind ours', () => {
  const of = { unansweredUntilMs: 1_000 };
  expect([0, 1_000, 61_000, 61_001].map((nowMs) => mayStillArrive(of, nowMs))).toEqual([true, true, true, false]);
});

test('one that was answered does not', () => {
  expect(mayStillArrive({ unansweredUntilMs: null }, 0)).toBe(false);
});
