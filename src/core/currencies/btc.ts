// Bitcoin; its parameters are those of Bitcoin Core's chainparams.cpp and policy.h.
import { type CurrencyDefinition, depths } from './definition.ts';
import { addresses, PLAIN_DIALECT, PLAIN_FEES, SEGWIT_BLOCKS, SEGWIT_KEYS } from './utxo.ts';

export const BTC = {
  code: 'BTC',
  name: 'Bitcoin',
  family: 'utxo',
  decimals: 8,
  quoteDecimals: 8,
  dustMinor: 546n,
  uriScheme: 'bitcoin',
  aliases: [],
  requiredDepths: depths(1, 2, 3, 6, 6),
  rateSymbols: { kraken: ['XBTUSD', 'XXBTZUSD'], coinbase: 'BTC-USD', bitstamp: 'btcusd', bitfinex: 'tBTCUSD' },
  payouts: { lightning: { minimumMinor: 1n }, bitcoin: { minimumMinor: 100_000n } },
  achOrder: 2,
  utxo: {
    purpose: 84,
    slip44: 0,
    addressKind: 'p2wpkh',
    address: {
      mainnet: addresses(0x00, 0x05, 0x80, { bech32: 'bc' }),
      testnet: addresses(0x6f, 0xc4, 0xef, { bech32: 'tb' }),
      regtest: addresses(0x6f, 0xc4, 0xef, { bech32: 'bcrt' }),
    },
    genesis: {
      mainnet: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
      testnet: '000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943',
      regtest: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
    },
    splits: [{ height: 478_559, hash: '00000000000000000019f112ec0a9982926f1258cdcc558dd7c3b7e5dc7fa148' }],
    blockFeatures: SEGWIT_BLOCKS,
    work: { hash: 'header', merged: false, limitBits: 0x1d00ffff },
    feeRates: PLAIN_FEES,
    coinbaseMaturity: 100,
    blockBytes: 4_000_000,
    blockSeconds: 600,
    dialect: PLAIN_DIALECT,
    extendedKeys: SEGWIT_KEYS,
    unpayablePrefixes: [],
  },
  evm: null,
} as const satisfies CurrencyDefinition;
