// How deep a payment must lie before it counts, by currency and USD value, and when it is final: the table of behaviour §3.
import type { RequiredDepth } from './currencies/definition.ts';
import { balanceOf, CURRENCIES, chainRow, type PaymentMethod } from './currency.ts';

export type { RequiredDepth } from './currencies/definition.ts';

const SMALL_BELOW_USD_MINOR = 100_00n;
const MEDIUM_BELOW_USD_MINOR = 1_000_00n;
const LARGE_BELOW_USD_MINOR = 10_000_00n;

/** The required depth for a value in cents; null = value unknown, which takes the highest tier. */
export function requiredDepth(currency: PaymentMethod, usdMinor: bigint | null): RequiredDepth {
  const { small, medium, large, largest } = CURRENCIES[currency].requiredDepths;
  if (usdMinor === null || usdMinor >= LARGE_BELOW_USD_MINOR) return largest;
  if (usdMinor >= MEDIUM_BELOW_USD_MINOR) return large;
  return usdMinor >= SMALL_BELOW_USD_MINOR ? medium : small;
}

/** The required depth of every tier, the lowest first. */
export function requiredDepthsOfTiers(currency: PaymentMethod): readonly RequiredDepth[] {
  const { small, medium, large, largest } = CURRENCIES[currency].requiredDepths;
  return [small, medium, large, largest];
}

/** The depth at which a payment is final. */
export function finalDepth(currency: PaymentMethod): RequiredDepth {
  return CURRENCIES[currency].requiredDepths.final;
}

export type Depth = {
  readonly confirmations: number;
  readonly coinbase: boolean;
  readonly lock: 'instantsend' | 'chainlock' | null;
};

/** Whether a payment on the best chain (or locked by our own node) has reached `required`; a coinbase output counts only when mature. */
export function reaches(currency: PaymentMethod, depth: Depth, required: RequiredDepth): boolean {
  return depth.confirmations >= confirmationsToReach(currency, depth, required);
}

/** The confirmations this payment needs to reach `required`; 0 when a lock already suffices, infinite when only a lock does. */
export function confirmationsToReach(currency: PaymentMethod, depth: Depth, required: RequiredDepth): number {
  const { coinbaseMaturity } = chainRow(balanceOf(currency));
  // where nothing has to mature (Ethereum) what a block creates is as final as the rest of it
  if (depth.coinbase && coinbaseMaturity > 0) return Math.max(required.depth, coinbaseMaturity);
  const locked = depth.lock !== null && required.lock !== null && (required.lock === 'instantsend' || depth.lock === 'chainlock');
  if (locked) return 0;
  return required.onlyLock ? Number.POSITIVE_INFINITY : required.depth;
}
