// Which merchants take much of the thread that all share.
import { expect, test } from 'vitest';
import { merchantCosts } from '../../src/outside/outbound/merchant-costs.ts';

const [MERCHANT, OTHER] = [1n, 2n];

function costs(isForAll = true) {
  let now = 0;
  const all = merchantCosts(isForAll, () => now);
  return {
    ...all,
    pass(ms: number): void {
      now += ms;
    },
    calls(count: number, cpuMs: number, merchantId = MERCHANT): void {
      for (let n = 0; n < count; n++) {
        all.call(merchantId);
        all.took(merchantId, cpuMs);
      }
    },
  };
}

test('one part of 20 ms is dear, told once, and of nobody else', () => {
  const { took, wereDear } = costs();
  took(MERCHANT, 19.9);
  expect(wereDear(MERCHANT)).toBe(false);
  took(MERCHANT, 20);
  expect(wereDear(OTHER)).toBe(false);
  expect(wereDear(MERCHANT)).toBe(true);
  expect(wereDear(MERCHANT)).toBe(false);
});

test('a second of calls that take 5 ms each is dear', () => {
  const { calls, wereDear } = costs();
  calls(199, 5);
  expect(wereDear(MERCHANT)).toBe(false);
  calls(1, 5);
  expect(wereDear(MERCHANT)).toBe(true);
  calls(199, 5, OTHER);
  calls(1, 4.9, OTHER);
  expect(wereDear(OTHER)).toBe(false);
});

test('any number of ordinary calls is not', () => {
  const { calls, wereDear } = costs();
  calls(10_000, 4.9);
  expect(wereDear(MERCHANT)).toBe(false);
});

test('what was taken ten seconds ago does not count', () => {
  const { calls, pass, wereDear } = costs();
  calls(150, 5);
  pass(9_999);
  calls(49, 5);
  expect(wereDear(MERCHANT)).toBe(false);
  pass(1);
  calls(150, 5);
  expect(wereDear(MERCHANT)).toBe(false);
  pass(9_999);
  calls(50, 5);
  expect(wereDear(MERCHANT)).toBe(true);
});

test('a second of dear parts within ten is too much, whatever else there is, for a minute', () => {
  const { calls, isOver, pass } = costs();
  calls(1_000, 0.1);
  calls(49, 20.4);
  expect(isOver(MERCHANT)).toBe(false);
  calls(1, 20);
  expect(isOver(MERCHANT)).toBe(true);
  expect(isOver(OTHER)).toBe(false);
  calls(1_000, 0.1, 3n);
  calls(50, 20, 3n);
  expect(isOver(3n)).toBe(true);
  pass(59_999);
  expect(isOver(MERCHANT)).toBe(true);
  pass(1);
  expect(isOver(MERCHANT)).toBe(false);
});

test('so is a second of calls that take 5 ms each, and no number of ordinary ones', () => {
  const { calls, isOver } = costs();
  calls(199, 5);
  calls(10_000, 4.9, OTHER);
  expect([isOver(MERCHANT), isOver(OTHER)]).toEqual([false, false]);
  calls(1, 5);
  expect([isOver(MERCHANT), isOver(OTHER)]).toEqual([true, false]);
});

test('of what those share who are dear only a second of dear parts is too much', () => {
  const { calls, isOver } = costs(false);
  calls(1_000, 19);
  calls(49, 20.4);
  expect(isOver(MERCHANT)).toBe(false);
  calls(1, 20);
  expect(isOver(MERCHANT)).toBe(true);
  calls(50, 20, OTHER);
  expect(isOver(OTHER)).toBe(true);
});
