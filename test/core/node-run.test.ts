// Whether a Lightning node has run on, as its channels say.
import { describe, expect, test } from 'vitest';
import { hasRunSince, isSameStart, knowsWhoIsThere, type NodeRun, runOf } from '../../src/core/lightning/node-run.ts';

const HOUR = 3_600_000;
const BEGAN = 1_000 * HOUR;
const NOW = BEGAN + 5 * HOUR;
const RUN: NodeRun = { startedAtMs: BEGAN, startSeenAtMs: BEGAN + 4_000 };
type From = Readonly<Record<string, number>>;
const of = (from: From) => Object.entries(from).map(([point, fromMs]) => ({ point, fromMs }));
const seen = (from: From, before: From, run: NodeRun | null = RUN): NodeRun =>
  runOf(of(from), { run, channels: new Map(Object.entries(before)) }, NOW);
const NEW = { startSeenAtMs: NOW };

describe('it has run on', () => {
  test.each<[string, From, From]>([
    ['as it was', { a: BEGAN }, { a: BEGAN }],
    ['ten seconds off', { a: BEGAN + 10_000 }, { a: BEGAN }],
    ['with one more', { a: BEGAN, b: NOW }, { a: BEGAN }],
    ['with only a younger one left', { b: BEGAN + HOUR }, { a: BEGAN, b: BEGAN + HOUR }],
    ['with a younger one that is counted anew', { a: BEGAN, b: NOW }, { a: BEGAN, b: BEGAN + HOUR }],
  ])('%s', (_what, now, before) => {
    expect(seen(now, before)).toBe(RUN);
  });
});

describe('it has not, or nobody knows', () => {
  test.each<[string, From, From, NodeRun | null, number]>([
    ['all are counted anew', { a: NOW - 60_000, b: NOW - 60_000 }, { a: BEGAN, b: BEGAN + HOUR }, RUN, NOW - 60_000],
    [
      'also where the youngest one looks as it was',
      { a: NOW - 1_000, b: NOW - 1_000 },
      { a: BEGAN, b: NOW - 5_000 },
      RUN,
      NOW - 1_000,
    ],
    ['whatever the order', { b: NOW - 1_000, a: NOW - 1_000 }, { b: NOW - 5_000, a: BEGAN }, RUN, NOW - 1_000],
    ['it counts less than it should', { a: BEGAN + 10_001 }, { a: BEGAN }, RUN, BEGAN + 10_001],
    ['it counts more than it should', { a: BEGAN - 10_001 }, { a: BEGAN }, RUN, BEGAN - 10_001],
    ['none is left', { b: BEGAN + HOUR }, { a: BEGAN }, RUN, BEGAN + HOUR],
    ['it has none', {}, { a: BEGAN }, RUN, NOW],
    ['it was not seen before', { a: BEGAN }, { a: BEGAN }, null, BEGAN],
  ])('%s', (_what, now, before, run, startedAtMs) => {
    expect(seen(now, before, run)).toEqual({ ...NEW, startedAtMs });
  });
});

test('a run counts for what was asked an hour after it was first seen', () => {
  expect(hasRunSince(RUN, RUN.startSeenAtMs + HOUR)).toBe(true);
  expect(hasRunSince(RUN, RUN.startSeenAtMs + HOUR - 1)).toBe(false);
});

test('who is there it knows two minutes after its start was seen', () => {
  const long = { startedAtMs: BEGAN, startSeenAtMs: BEGAN + 120_000 };
  expect(knowsWhoIsThere(long, long.startSeenAtMs + 120_000)).toBe(true);
  expect(knowsWhoIsThere(long, long.startSeenAtMs + 119_999)).toBe(false);
});

test('one that had just been started then has made its connections since', () => {
  const short = { startedAtMs: BEGAN, startSeenAtMs: BEGAN + 119_999 };
  expect(knowsWhoIsThere(short, short.startSeenAtMs)).toBe(true);
});

test('two starts within ten seconds are one', () => {
  expect(isSameStart(BEGAN, BEGAN + 10_000)).toBe(true);
  expect(isSameStart(BEGAN + 10_001, BEGAN)).toBe(false);
});
