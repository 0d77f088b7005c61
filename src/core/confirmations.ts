// How deep a payment must lie before it counts (R), by currency and USD value, and when it is final: the table of behaviour §3.
import { CURRENCIES, type CurrencyCode } from './currency.ts';

export type RequiredDepth = {
  /** Confirmations that suffice. */
  readonly depth: number;
  /** A lock of our own node that suffices at once (DASH). */
  readonly lock: 'instantsend' | 'chainlock' | null;
};

const TIERS_USD_MINOR = [100_00n, 1_000_00n, 10_000_00n] as const;
const depths = (...list: number[]): readonly RequiredDepth[] => list.map((depth) => ({ depth, lock: null }));

/** Four tiers (below 100, 1,000, 10,000 USD and above), then the final depth. */
const TABLE: Readonly<Record<CurrencyCode, readonly RequiredDepth[]>> = {
  BTC: depths(1, 2, 3, 6, 6),
  LTC: depths(2, 3, 6, 12, 12),
  BCH: depths(1, 3, 6, 10, 10),
  DASH: [
    { depth: 2, lock: 'instantsend' },
    { depth: 2, lock: 'instantsend' },
    { depth: 6, lock: 'chainlock' },
    { depth: 12, lock: 'chainlock' },
    { depth: 12, lock: 'chainlock' },
  ],
  DOGE: depths(6, 10, 20, 60, 60),
  ETH: depths(6, 12, 32, 64, 64),
  USDT: depths(6, 12, 32, 64, 64),
};

/** R for a value in cents; null = value unknown, which takes the highest tier. */
export function requiredDepth(currency: CurrencyCode, usdMinor: bigint | null): RequiredDepth {
  const tier = usdMinor === null ? 3 : TIERS_USD_MINOR.filter((limit) => usdMinor >= limit).length;
  return TABLE[currency][tier] as RequiredDepth;
}

/** R of every tier, the lowest first. */
export function requiredDepthsOfTiers(currency: CurrencyCode): readonly RequiredDepth[] {
  return TABLE[currency].slice(0, -1);
}

/** The depth at which a payment is final. */
export function finalDepth(currency: CurrencyCode): RequiredDepth {
  return TABLE[currency][4] as RequiredDepth;
}

export type Depth = {
  readonly confirmations: number;
  readonly coinbase: boolean;
  readonly lock: 'instantsend' | 'chainlock' | null;
};

/** Whether a payment on the best chain (or locked by our own node) has reached `required`; a coinbase output counts only when mature. */
export function reaches(currency: CurrencyCode, depth: Depth, required: RequiredDepth): boolean {
  return depth.confirmations >= confirmationsToReach(currency, depth, required);
}

/** The confirmations this payment needs to reach `required`; 0 when a lock already suffices. */
export function confirmationsToReach(currency: CurrencyCode, depth: Depth, required: RequiredDepth): number {
  const maturity = CURRENCIES[currency].utxo?.coinbaseMaturity ?? 0;
  if (depth.coinbase) return Math.max(required.depth, maturity);
  const locked = depth.lock !== null && required.lock !== null && (required.lock === 'instantsend' || depth.lock === 'chainlock');
  return locked ? 0 : required.depth;
}
