// Which merchants are called from a thread that others do not share, and for how long.
import { expect, test } from 'vitest';
import { dearMerchants } from '../../src/outside/outbound/dear-merchants.ts';

const DAY_MS = 24 * 60 * 60_000;
const [MERCHANT, OTHER] = [1n, 2n];

function merchants() {
  let now = 0;
  return {
    ...dearMerchants(() => now),
    pass(ms: number): void {
      now += ms;
    },
  };
}

test('a merchant is dear for a day from the last time on', () => {
  const { add, isDear, isResting, pass } = merchants();
  expect(isDear(MERCHANT)).toBe(false);
  add(MERCHANT);
  pass(DAY_MS / 2);
  add(MERCHANT);
  pass(DAY_MS - 1);
  expect(isDear(MERCHANT)).toBe(true);
  expect(isDear(OTHER)).toBe(false);
  expect(isResting(MERCHANT)).toBe(false);
  pass(1);
  expect(isDear(MERCHANT)).toBe(false);
});

test('from whose server a thread does not come back is not called until it has, and twenty times as long', async () => {
  const { add, addStuck, isDear, isResting, pass } = merchants();
  const exited = Promise.withResolvers<void>();
  pass(5_000);
  addStuck(MERCHANT, exited.promise);
  pass(10_000);
  // what came meanwhile of a call before
  add(MERCHANT);
  expect(isResting(MERCHANT)).toBe(true);
  expect(isResting(OTHER)).toBe(false);
  exited.resolve();
  await exited.promise;
  pass(199_999);
  expect(isResting(MERCHANT)).toBe(true);
  pass(1);
  expect(isResting(MERCHANT)).toBe(false);
  expect(isDear(MERCHANT)).toBe(true);
});

test('for a minute at least', async () => {
  const { addStuck, isResting, pass } = merchants();
  addStuck(MERCHANT, Promise.resolve());
  await Promise.resolve();
  pass(59_999);
  expect(isResting(MERCHANT)).toBe(true);
  pass(1);
  expect(isResting(MERCHANT)).toBe(false);
});

test('at most 10,000 are known, those of the last time', () => {
  const { add, isDear } = merchants();
  add(1n);
  for (let n = 2n; n <= 10_000n; n++) add(n);
  add(1n);
  add(10_001n);
  expect(isDear(1n)).toBe(true);
  expect(isDear(2n)).toBe(false);
  expect(isDear(3n)).toBe(true);
});
