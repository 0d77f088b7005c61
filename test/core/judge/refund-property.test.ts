// The judge under random histories of a merchant who sends payments back (test/support/refund-history.ts): the invariants of the model hold after
// every step, and so do those of reimbursements (test/support/invariants.ts). A failing history is identified by its seed: add it to the list.
import { liveWithRefunds } from '../../support/refund-history.ts';
import { testHistories } from '../../support/seeded-histories.ts';

/** Seeds that fail with a fault that once was there, kept for ever. */
const ONCE_FAILED: readonly [seed: number, what: string][] = [
  [304, 'accepted by policy for payments that had gone back'],
  [22, 'the whole left payments in suspense that were in a block'],
  [37, 'a displaced one took the shares of an open one'],
  [45, 'settled while one was open'],
  [473, 'reimbursed by another currency while its own was there'],
];

testHistories(liveWithRefunds, { onceFailed: ONCE_FAILED, count: 100 });
