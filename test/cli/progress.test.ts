import { expect, test } from 'vitest';
import { progressLine } from '../../src/main/cli/progress.ts';

test.each([
  [0, 0, 'block 0 of 1000 (0 %)'],
  [250, 60_000, 'block 250 of 1000 (25 %), about 3 min left'],
  [999, 999_000, 'block 999 of 1000 (99 %), about 1 s left'],
  [100, 3_600_000, 'block 100 of 1000 (10 %), about 9.0 h left'],
])('at block %i after %i ms it says how far it is and how long the rest takes', (height, tookMs, line) => {
  expect(progressLine(height, { from: 0, to: 1_000 }, tookMs)).toBe(line);
});
