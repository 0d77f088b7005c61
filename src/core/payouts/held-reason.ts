// Why a payout waits (behaviour §5): the first reason that applies, and how much of what a merchant has taken out is not final yet.
import type { CurrencyCode } from '../currency.ts';
import { atLeastZero, minus, plus } from '../money.ts';
import { type Rate, usdForCryptoUp } from '../rate.ts';
import type { HeldReason } from './states.ts';

export type HoldFacts = {
  /** A red audit, or another reason to distrust the books, has stopped all payouts. */
  readonly isStopped: boolean;
  /** The merchant owes something, in any currency. */
  readonly owes: boolean;
  /** It was above the merchant's limit when it was requested, or is above today's. */
  readonly needsApproval: boolean;
  readonly isApproved: boolean;
  /** Whether more than the operator allows would be paid out of credits that are not final. */
  readonly isTooEarly: boolean;
  /** As many of its merchant as may be are under way over Lightning. */
  readonly isCrowded: boolean;
};

/** The reason that is shown; null = nothing holds it. */
export function heldReason(facts: HoldFacts): Exclude<HeldReason, 'unknown_outcome'> | null {
  if (facts.isStopped) return 'breaker';
  if (facts.owes) return 'receivable';
  if (facts.needsApproval && !facts.isApproved) return 'approval';
  if (facts.isTooEarly) return 'not_final';
  return facts.isCrowded ? 'cool_down' : null;
}

/** Whether a payout of this value waits for the merchant's approval limit. A value that is not known is above every limit. */
export function isAboveLimit(usdMinor: bigint | null, limit: bigint | null): boolean {
  return limit !== null && (usdMinor === null || usdMinor > limit);
}

/** Of one currency, in minor units: what was credited and is not final yet, and what of the merchant's money is still here. */
export type Unfinal = { readonly currency: CurrencyCode; readonly unfinal: bigint; readonly left: bigint };

/**
 * Cents that would be missing if every credit that is not final were lost: of each currency what its balance does not cover, rounded up.
 * Null when a currency of which something would be missing has no rate.
 */
export function missingIfLost(parts: readonly Unfinal[], rates: ReadonlyMap<CurrencyCode, Rate>): bigint | null {
  let total = 0n;
  for (const { currency, unfinal, left } of parts) {
    const missing = atLeastZero(minus(unfinal, left));
    if (missing === 0n) continue;
    const rate = rates.get(currency);
    if (rate === undefined) return null;
    total = plus(total, usdForCryptoUp(missing, currency, rate));
  }
  return total;
}
