// Dash; its parameters are those of Dash Core's chainparams.cpp. Its quorums lock transactions (InstantSend) and blocks (ChainLocks).
import type { CurrencyDefinition } from './definition.ts';
import { addresses, PLAIN_BLOCKS, PLAIN_DIALECT, PLAIN_FEES } from './utxo.ts';

export const DASH = {
  code: 'DASH',
  name: 'Dash',
  family: 'utxo',
  decimals: 8,
  quoteDecimals: 8,
  dustMinor: 546n,
  uriScheme: 'dash',
  aliases: [],
  requiredDepths: {
    small: { depth: 2, lock: 'instantsend' },
    medium: { depth: 2, lock: 'instantsend' },
    large: { depth: 6, lock: 'chainlock' },
    largest: { depth: 12, lock: 'chainlock' },
    final: { depth: 12, lock: 'chainlock' },
  },
  rateSymbols: { kraken: ['DASHUSD', 'DASHUSD'], coinbase: 'DASH-USD', bitstamp: null, bitfinex: 'tDSHUSD' },
  payouts: {},
  achOrder: null,
  utxo: {
    purpose: 44,
    slip44: 5,
    addressKind: 'p2pkh',
    address: {
      mainnet: addresses(0x4c, 0x10, 0xcc),
      testnet: addresses(0x8c, 0x13, 0xef),
      regtest: addresses(0x8c, 0x13, 0xef),
    },
    genesis: {
      mainnet: '00000ffd590b1485b3caadc19b22e6379c733355108f107a430458cdf3407ab6',
      testnet: '00000bafbc94add76cb75e2ec92894837288a481e5c005f6563d91623bf8bc2c',
      regtest: '000008ca1832a4baf228eb1553c03d3a2c8e02399550dd6ea8d65cec3ef23d2e',
    },
    blockFeatures: { ...PLAIN_BLOCKS, specialTransactions: true, headerHash: 'x11' },
    work: { hash: 'header', merged: false, limitBits: 0x1e0fffff },
    feeRates: PLAIN_FEES,
    coinbaseMaturity: 100,
    blockBytes: 2_000_000,
    blockSeconds: 156,
    dialect: { ...PLAIN_DIALECT, locks: true },
    extendedKeys: [{ form: 'drkp', public: 0x02fe52cc, private: 0x02fe52f8, mainnet: true }],
    unpayablePrefixes: [],
  },
  evm: null,
} as const satisfies CurrencyDefinition;
