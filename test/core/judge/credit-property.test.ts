// The judge under random histories: whatever payers, miners, attackers, outages, prices and the merchant do, in whatever order, the
// invariants of the model hold after every step (test/support/invariants.ts), nothing that is due is missed, and at rest the books equal
// the chain. A failing history is identified by its seed: add it to the list below.
import { expect, test } from 'vitest';
import { live } from '../../support/history.ts';

/** Seeds that once failed, kept for ever, with what they found. */
const ONCE_FAILED: readonly [seed: number, what: string][] = [
  [3, 'a payment out of the mempool sent the rules round in circles'],
  [674, 'declined in the very last millisecond in which a payment is on time'],
  [1000, 'declined in the very last millisecond in which a payment is on time'],
  [2700, 'an unconfirmed late payment vouched for the price of a confirmed one'],
  [3525, 'a payment that had just left the chain was accepted together with a late one'],
];
const HISTORIES = 600;

function run(seed: number): void {
  try {
    live(seed);
  } catch (error) {
    throw new Error(`history ${seed}: ${(error as Error).message}`, { cause: error });
  }
}

test.each(ONCE_FAILED)('history %i: %s', (seed) => {
  expect(() => run(seed)).not.toThrow();
});

test(`${HISTORIES} histories keep every invariant`, { timeout: 120_000 }, () => {
  for (let seed = 10_001; seed <= 10_000 + HISTORIES; seed++) run(seed);
});
