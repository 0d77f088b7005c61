// The methods of payouts: the unit of a payout's amount, and its minimum (behaviour §5).
import type { CurrencyCode } from '../currency.ts';

export type PayoutUnit = {
  readonly code: 'BTC' | 'USD' | 'USDT';
  readonly decimals: number;
  readonly minimumMinor: bigint;
  /** The minimum, as text. */
  readonly minimum: string;
};

export const PAYOUT_METHODS = ['lightning', 'bitcoin', 'ach', 'usdt'] as const;
export type PayoutMethod = (typeof PAYOUT_METHODS)[number];

/** What goes back to a customer goes through the same machine: its `method` in rows and intents, never in the API. */
export const REIMBURSEMENT = 'reimbursement';

export const PAYOUT_UNITS = {
  lightning: { code: 'BTC', decimals: 8, minimumMinor: 1n, minimum: '0.00000001' },
  bitcoin: { code: 'BTC', decimals: 8, minimumMinor: 100_000n, minimum: '0.001' },
  ach: { code: 'USD', decimals: 2, minimumMinor: 100_00n, minimum: '100' },
  usdt: { code: 'USDT', decimals: 6, minimumMinor: 50_000_000n, minimum: '50' },
} as const satisfies Readonly<Record<PayoutMethod, PayoutUnit>>;

/** The balances that an ach payout is paid from while it names none, in this order; then the others, the largest first. */
export const ACH_SOURCES: readonly CurrencyCode[] = ['USDT', 'BTC'];
