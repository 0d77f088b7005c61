// Ether.
import { type CurrencyDefinition, finalizedDepths } from './definition.ts';
import { ETHEREUM } from './evm.ts';

export const ETH = {
  code: 'ETH',
  name: 'Ethereum',
  family: 'evm-native',
  decimals: 18,
  quoteDecimals: 8,
  dustMinor: 0n,
  uriScheme: 'ethereum',
  aliases: [],
  requiredDepths: finalizedDepths(6, 12, 32),
  rateSymbols: { kraken: ['ETHUSD', 'XETHZUSD'], coinbase: 'ETH-USD', bitstamp: 'ethusd', bitfinex: 'tETHUSD' },
  payouts: {},
  achOrder: null,
  utxo: null,
  evm: { ...ETHEREUM, account: 0, token: null },
} as const satisfies CurrencyDefinition;
