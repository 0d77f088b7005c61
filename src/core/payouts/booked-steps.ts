// What was booked before of the steps of a payout, a batch or a sweep. A reorganisation below the final depth and a node that lied make a step
// happen again: each time is an entry of its own, and what is corrected is booked as the difference to what stands in the books.
import type { Entry, Posting } from '../judge/case.ts';
import { greatest, least, minus, negated } from '../money.ts';

/** By step: how often it was booked, and what left our outputs by it altogether. */
export type BookedSteps = ReadonlyMap<string, { readonly times: number; readonly out: bigint }>;

/** `po:<id>:<step>`, and of a bank file `unknown:usd:<file>:<step>`. */
const KEY = /^(unknown:usd:[^:]+|[a-z]+:[^:]+):(.+)$/;

/** The entry under a key that none before it has: the first time of its step has no number. */
export function nextTime(entry: Entry, booked: BookedSteps): Entry {
  const [, subject = '', step = ''] = KEY.exec(entry.key) ?? [];
  const times = booked.get(step)?.times ?? 0;
  return times === 0 ? entry : { ...entry, key: `${subject}:${times + 1}:${step}` };
}

/** What has left our outputs by a step. */
export const outBy = (booked: BookedSteps, step: string): bigint => booked.get(step)?.out ?? 0n;

/**
 * The lines that make what a step has cost the service from what is booked of it: below zero it is income, because an expense cannot be below
 * nothing. None where nothing differs.
 */
export function costLines(
  accounts: { readonly expense: string; readonly income: string; readonly assets: string },
  cost: bigint,
  booked: bigint,
): readonly Posting[] {
  return [
    { account: accounts.expense, amount: minus(greatest(cost, 0n), greatest(booked, 0n)) },
    { account: accounts.income, amount: minus(least(cost, 0n), least(booked, 0n)) },
    { account: accounts.assets, amount: negated(minus(cost, booked)) },
  ].filter(({ amount }) => amount !== 0n);
}
