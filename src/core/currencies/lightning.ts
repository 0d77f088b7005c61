// Lightning: another way to pay Bitcoin. Its payments go to the Bitcoin balance; a settled invoice is final, so every depth is one.
import { BTC } from './btc.ts';
import { type CurrencyDefinition, depths } from './definition.ts';

export const LIGHTNING = {
  code: 'BTC-LN',
  name: 'Lightning',
  family: 'lightning',
  decimals: BTC.decimals,
  quoteDecimals: BTC.quoteDecimals,
  dustMinor: 1n,
  uriScheme: 'LIGHTNING',
  aliases: ['LN', 'LIGHTNING', 'BTC_LN', 'BTC-LIGHTNING'],
  requiredDepths: depths(1, 1, 1, 1, 1),
  rateSymbols: BTC.rateSymbols,
  payouts: {},
  achOrder: null,
  utxo: null,
  evm: null,
  /** The balance that its payments go to. */
  balance: BTC.code,
} as const satisfies CurrencyDefinition & { readonly balance: string };

/** An invoice carries thousandths of a satoshi. */
export const MSAT = 1_000n;
