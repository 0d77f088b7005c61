// The shape of one currency: everything that differs between currencies is data in the currency's own file.
import { type EvmParameters, FINALIZED_BEHIND } from './evm.ts';
import type { UtxoParameters } from './utxo.ts';

export type Family = 'utxo' | 'evm-native' | 'evm-token' | 'lightning';

/** How deep a payment must lie: its required depth. */
export type RequiredDepth = {
  /** Confirmations that suffice. */
  readonly depth: number;
  /** What our own node may say that suffices at once: Dash's locks; on Ethereum that the block is finalized (as `chainlock`). */
  readonly lock: 'instantsend' | 'chainlock' | null;
  /** Depth alone never suffices: only the node says when a block is final. */
  readonly onlyLock?: true;
};

/** Required depths by the value of a payment in USD (behaviour §3). */
export type RequiredDepths = {
  /** Below 100 USD. */
  readonly small: RequiredDepth;
  /** Below 1,000 USD. */
  readonly medium: RequiredDepth;
  /** Below 10,000 USD. */
  readonly large: RequiredDepth;
  /** From 10,000 USD on, and when the value is unknown. */
  readonly largest: RequiredDepth;
  /** The depth at which a payment is final. */
  readonly final: RequiredDepth;
};

export type CurrencyDefinition = {
  readonly code: string;
  readonly name: string;
  readonly family: Family;
  readonly decimals: number;
  /** Decimals of a quote (`crypto_amount`): fewer than the currency has where nobody pays in the smallest units. */
  readonly quoteDecimals: number;
  /** Smallest amount that a transaction may ask for, in minor units (behaviour §3). */
  readonly dustMinor: bigint;
  /** Scheme of the payment URI: BIP 321, or ERC-681 for Ethereum. */
  readonly uriScheme: string;
  /** Other names that `crypto_selected` accepts for it, in capitals. */
  readonly aliases: readonly string[];
  readonly requiredDepths: RequiredDepths;
  /** The exchanges' symbols for its price in US dollars; null: not traded there. */
  readonly rateSymbols: {
    /** The pair as we ask for it, and the name that the answer uses. */
    readonly kraken: readonly [asked: string, answered: string];
    readonly coinbase: string;
    readonly bitstamp: string | null;
    readonly bitfinex: string;
  };
  /** The methods that pay out in it, and their minimums in minor units (behaviour §5). */
  readonly payouts: Readonly<Partial<Record<'lightning' | 'bitcoin' | 'usdt', { readonly minimumMinor: bigint }>>>;
  /** Its place among the balances that an ach payout is paid from while it names none; null: after those with a place. */
  readonly achOrder: number | null;
  readonly utxo: UtxoParameters | null;
  readonly evm: EvmParameters | null;
};

/** Required depths without locks, from the smallest amounts to `final`. */
export function depths(small: number, medium: number, large: number, largest: number, final: number): RequiredDepths {
  const of = (depth: number): RequiredDepth => ({ depth, lock: null });
  return { small: of(small), medium: of(medium), large: of(large), largest: of(largest), final: of(final) };
}

/**
 * Ethereum's: the largest amounts wait until the node says that their block is finalized, which happens at about this depth; where a node
 * does not know the tag, its adapter says so at exactly this depth.
 */
export function finalizedDepths(small: number, medium: number, large: number): RequiredDepths {
  const of = (depth: number): RequiredDepth => ({ depth, lock: 'chainlock' });
  const finalized: RequiredDepth = { ...of(FINALIZED_BEHIND + 1), onlyLock: true };
  return { small: of(small), medium: of(medium), large: of(large), largest: finalized, final: finalized };
}
