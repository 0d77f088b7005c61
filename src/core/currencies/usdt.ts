// Tether on Ethereum (ERC-20).
import { type CurrencyDefinition, finalizedDepths } from './definition.ts';
import { ETHEREUM } from './evm.ts';

export const USDT = {
  code: 'USDT',
  name: 'Tether USD',
  family: 'evm-token',
  decimals: 6,
  quoteDecimals: 6,
  dustMinor: 0n,
  uriScheme: 'ethereum',
  aliases: ['USDT-ERC20'],
  requiredDepths: finalizedDepths(6, 12, 32),
  rateSymbols: { kraken: ['USDTUSD', 'USDTZUSD'], coinbase: 'USDT-USD', bitstamp: 'usdtusd', bitfinex: 'tUSTUSD' },
  payouts: { usdt: { minimumMinor: 50_000_000n } },
  achOrder: 1,
  utxo: null,
  evm: {
    ...ETHEREUM,
    account: 1,
    token: {
      contract: {
        mainnet: '0xdac17f958d2ee523a2206206994597c13d831ec7',
        testnet: null,
        regtest: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
      },
    },
  },
} as const satisfies CurrencyDefinition;
