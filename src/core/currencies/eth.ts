// Ether.
import { type CurrencyDefinition, depths } from './currency-definition.ts';

export const ETH = {
  code: 'ETH',
  name: 'Ethereum',
  family: 'evm-native',
  decimals: 18,
  quoteDecimals: 8,
  dustMinor: 0n,
  uriScheme: 'ethereum',
  aliases: [],
  requiredDepths: depths(6, 12, 32, 64, 64),
  rateSymbols: { kraken: ['ETHUSD', 'XETHZUSD'], coinbase: 'ETH-USD', bitstamp: 'ethusd', bitfinex: 'tETHUSD' },
  payouts: {},
  achOrder: null,
  utxo: null,
} as const satisfies CurrencyDefinition;
