// The methods of payouts: the unit of a payout's amount, and its minimum (behaviour §5).
import { payoutCurrency } from '../currency.ts';
import { formatMinor } from '../money.ts';

export const PAYOUT_METHODS = ['lightning', 'bitcoin', 'ach', 'usdt'] as const;
export type PayoutMethod = (typeof PAYOUT_METHODS)[number];

/** What goes back to a customer goes through the same machine: its `method` in rows and intents, never in the API. */
export const REIMBURSEMENT = 'reimbursement';

/** A unit with its minimum as text besides. */
function unit<Code extends string>(of: { readonly code: Code; readonly decimals: number; readonly minimumMinor: bigint }) {
  return { ...of, minimum: formatMinor(of.minimumMinor, of.decimals).replace(/\.?0+$/, '') };
}

export const PAYOUT_UNITS = {
  lightning: unit(payoutCurrency('lightning')),
  bitcoin: unit(payoutCurrency('bitcoin')),
  ach: { code: 'USD', decimals: 2, minimumMinor: 100_00n, minimum: '100' },
  usdt: unit(payoutCurrency('usdt')),
} as const satisfies Readonly<Record<PayoutMethod, unknown>>;
