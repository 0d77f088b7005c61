// What the signer says when a rule forbids a signature, whoever asks.

/** What each rule is about, in the words that a refusal begins with. */
export const RULES = {
  keys: 'the inputs are of our own account',
  amounts: 'an input holds what is said of it',
  batch: 'the batch is open and of this currency',
  lease: 'the request is of the worker that has the batch now',
  payout: 'a payout is paid as the database has it',
  intent: 'a payout was signed by an API that is trusted',
  stopped: 'nothing begins to leave while payouts are stopped or its merchant owes something',
  hold: 'the amount and the highest fee are held in the ledger',
  complete: 'all payouts of a batch are paid together',
  invoice: 'our Lightning node reads the invoice',
  destination: 'payees have a standard script',
  change: 'change goes where it is found again',
  fee: 'the fee is what the payouts allow',
  number: 'each number of a batch is signed once',
  conflict: 'of all transactions that pay a payout only one can be mined',
  reimbursed: 'no more goes back of a transaction than came for it',
  journal: 'the journal knows every attempt that the database has',
  limit: 'no more leaves than the limits allow',
} as const;
export type Rule = keyof typeof RULES;

/**
 * A request that a rule of {@link RULES} does not allow. Its message begins with `rule <name>`, by which the worker knows what it means.
 */
export class SigningRefused extends Error {
  override readonly name = 'SigningRefused';
  readonly rule: Rule;
  constructor(rule: Rule, what: string) {
    super(`rule ${rule} (${RULES[rule]}): ${what}`);
    this.rule = rule;
  }
}
