// Tether USD, the ERC-20 token on Ethereum.
import { type CurrencyDefinition, depths } from './currency-definition.ts';

export const USDT = {
  code: 'USDT',
  name: 'Tether USD',
  family: 'evm-token',
  decimals: 6,
  quoteDecimals: 6,
  dustMinor: 0n,
  uriScheme: 'ethereum',
  aliases: ['USDT-ERC20'],
  requiredDepths: depths(6, 12, 32, 64, 64),
  rateSymbols: { kraken: ['USDTUSD', 'USDTZUSD'], coinbase: 'USDT-USD', bitstamp: 'usdtusd', bitfinex: 'tUSTUSD' },
  payouts: { usdt: { minimumMinor: 50_000_000n } },
  achOrder: 1,
  utxo: null,
} as const satisfies CurrencyDefinition;
