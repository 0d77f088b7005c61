// Litecoin; its parameters are those of Litecoin Core's chainparams.cpp and policy.h. P2SH addresses had Bitcoin's version bytes before 2017.
import { type CurrencyDefinition, depths } from './definition.ts';
import { addresses, PLAIN_DIALECT, PLAIN_FEES, SEGWIT_BLOCKS, SEGWIT_KEYS } from './utxo.ts';

export const LTC = {
  code: 'LTC',
  name: 'Litecoin',
  family: 'utxo',
  decimals: 8,
  quoteDecimals: 8,
  dustMinor: 5460n,
  uriScheme: 'litecoin',
  aliases: [],
  requiredDepths: depths(2, 3, 6, 12, 12),
  rateSymbols: { kraken: ['LTCUSD', 'XLTCZUSD'], coinbase: 'LTC-USD', bitstamp: 'ltcusd', bitfinex: 'tLTCUSD' },
  payouts: {},
  achOrder: null,
  utxo: {
    purpose: 84,
    slip44: 2,
    addressKind: 'p2wpkh',
    address: {
      mainnet: addresses(0x30, 0x32, 0xb0, { bech32: 'ltc', legacyScriptHash: 0x05 }),
      testnet: addresses(0x6f, 0x3a, 0xef, { bech32: 'tltc', legacyScriptHash: 0xc4 }),
      regtest: addresses(0x6f, 0x3a, 0xef, { bech32: 'rltc', legacyScriptHash: 0xc4 }),
    },
    genesis: {
      mainnet: '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
      testnet: '4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0',
      regtest: '530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9',
    },
    blockFeatures: { ...SEGWIT_BLOCKS, mweb: true, maxMoney: 84_000_000n * 10n ** 8n },
    work: { hash: 'scrypt', merged: false, limitBits: 0x1e0fffff },
    feeRates: PLAIN_FEES,
    coinbaseMaturity: 100,
    blockBytes: 4_000_000,
    blockSeconds: 150,
    dialect: PLAIN_DIALECT,
    extendedKeys: [
      ...SEGWIT_KEYS,
      { form: 'Ltub', public: 0x019da462, private: 0x019d9cfe, mainnet: true },
      { form: 'Mtub', public: 0x01b26ef6, private: 0x01b26792, mainnet: true },
      { form: 'ttub', public: 0x0436f6e1, private: 0x0436ef7d, mainnet: false },
    ],
    unpayablePrefixes: ['ltcmweb', 'tmweb'],
  },
  evm: null,
} as const satisfies CurrencyDefinition;
