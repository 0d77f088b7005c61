// Tests of random histories: each is named by its seed, those that once failed are run first and for ever.
import { expect, test } from 'vitest';

/** Apart from those that are kept, so that none is run twice. */
const FIRST_SEED = 10_001;

/**
 * @param live runs one history; throws when something that must hold does not
 * @param onceFailed seeds that failed once, with what they found
 */
export function testHistories(
  live: (seed: number) => unknown,
  { onceFailed, count }: { readonly onceFailed: readonly (readonly [seed: number, what: string])[]; readonly count: number },
): void {
  function run(seed: number): void {
    try {
      live(seed);
    } catch (error) {
      throw new Error(`history ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
  test.each(onceFailed)('history %i: %s', (seed) => {
    expect(() => run(seed)).not.toThrow();
  });
  test(`${count} histories keep every invariant`, { timeout: 120_000 }, () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed++) run(seed);
  });
}
