// Whether a balance covers a payout and its highest fee, and how much of it can be paid out.
import { formatMinor, minus } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';

/** The unit of a method of payouts. */
type Unit = { readonly code: string; readonly decimals: number; readonly minimumMinor: bigint; readonly minimum: string };

/** The largest amount that leaves its fee, and `leave`, in the balance. @throws Refusal insufficient_balance, payout_below_minimum */
export function largestAmount(unit: Unit, available: bigint, feeMax: bigint, leave: bigint): bigint {
  // an empty balance has no largest amount
  if (available === 0n)
    throw new Refusal('insufficient_balance', { param: 'amount', message: 'The available balance is empty.' });
  const amount = minus(minus(available, leave), feeMax);
  if (amount >= unit.minimumMinor) return amount;
  throw new Refusal('payout_below_minimum', {
    param: 'amount',
    message: `What is available, less the highest network fee of ${formatMinor(feeMax, unit.decimals)} ${unit.code}, is below the minimum of ${unit.minimum} ${unit.code}.`,
  });
}

/** The refusal of what a balance does not cover. */
export function insufficientBalance(unit: Unit, available: bigint, feeMax: bigint): Refusal {
  const most = minus(available, feeMax);
  const covered = most >= unit.minimumMinor ? `; at most ${formatMinor(most, unit.decimals)} ${unit.code} can be paid out` : '';
  return new Refusal('insufficient_balance', {
    param: 'amount',
    message: `The available balance must cover the amount and a network fee of up to ${formatMinor(feeMax, unit.decimals)} ${unit.code}${covered}.`,
  });
}
