// What a refusal of the signer means for the payouts of a batch for which nothing was signed.

/**
 * `never`: nobody can pay it, now or later. `payout`: one of the payouts must not leave now, the others may; an operator can change that (a limit, an API that is not trusted yet).
 * `held`: it is what holds payouts everywhere, and they show it. `later`: it says nothing of the payouts. `wrong`: what the database says is not what it must be.
 */
export type RefusalKind = 'never' | 'payout' | 'held' | 'later' | 'wrong';

/** By the rule that the refusal's message names; a rule that is not known is `wrong`. */
const KINDS: ReadonlyMap<string, RefusalKind> = new Map([
  ['invoice', 'never'],
  ['limit', 'payout'],
  ['intent', 'payout'],
  ['destination', 'payout'],
  ['reimbursed', 'payout'],
  ['stopped', 'held'],
  ['keys', 'later'],
  ['batch', 'later'],
  ['lease', 'later'],
  ['number', 'later'],
]);

/** The rule that a refusal names; null when it names none. */
export function refusedRule(message: string): string | null {
  return /^rule (\w+) /.exec(message)?.[1] ?? null;
}

/** What a refusal says besides its rule. */
export const refusedFor = (message: string): string => message.replace(/^rule \w+ \(.*?\): /, '');

/** What a refusal of the signer means, by the rule that its message names; one that names no known rule is `wrong`. */
export function refusalKind(message: string): RefusalKind {
  return KINDS.get(refusedRule(message) ?? '') ?? 'wrong';
}
