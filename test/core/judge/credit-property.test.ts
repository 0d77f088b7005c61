// The judge under random histories: whatever payers, miners, attackers, outages, prices and the merchant do, in whatever order, the
// invariants of the model hold after every step (test/support/invariants.ts), nothing that is due is missed, and at rest the books equal
// the chain. A failing history is identified by its seed: add it to the list below.
import { live } from '../../support/history.ts';
import { testHistories } from '../../support/seeded-histories.ts';

/** Seeds that once failed, kept for ever, with what they found. */
const ONCE_FAILED: readonly [seed: number, what: string][] = [
  [3, 'a payment out of the mempool sent the rules round in circles'],
  [674, 'declined in the very last millisecond in which a payment is on time'],
  [1000, 'declined in the very last millisecond in which a payment is on time'],
  [2700, 'an unconfirmed late payment vouched for the price of a confirmed one'],
  [3525, 'a payment that had just left the chain was accepted together with a late one'],
];

testHistories(live, { onceFailed: ONCE_FAILED, count: 600 });
