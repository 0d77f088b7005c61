// Dogecoin; its parameters are those of Dogecoin Core's chainparams.cpp and policy.h.
import { type CurrencyDefinition, depths } from './definition.ts';
import { addresses, PLAIN_BLOCKS, PLAIN_DIALECT } from './utxo.ts';

export const DOGE = {
  code: 'DOGE',
  name: 'Dogecoin',
  family: 'utxo',
  decimals: 8,
  quoteDecimals: 8,
  dustMinor: 1_000_000n,
  uriScheme: 'dogecoin',
  aliases: [],
  requiredDepths: depths(6, 10, 20, 60, 60),
  rateSymbols: { kraken: ['XDGUSD', 'XDGUSD'], coinbase: 'DOGE-USD', bitstamp: 'dogeusd', bitfinex: 'tDOGE:USD' },
  payouts: {},
  achOrder: null,
  utxo: {
    purpose: 44,
    slip44: 3,
    addressKind: 'p2pkh',
    address: {
      mainnet: addresses(0x1e, 0x16, 0x9e),
      testnet: addresses(0x71, 0xc4, 0xf1),
      regtest: addresses(0x6f, 0xc4, 0xef),
    },
    genesis: {
      mainnet: '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
      testnet: 'bb0a78264637406b6360aad926284d544d7049f45189db5664f3c4d07350559e',
      regtest: '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
    },
    blockFeatures: { ...PLAIN_BLOCKS, auxpow: true, maxMoney: 10_000_000_000n * 10n ** 8n },
    work: { hash: 'scrypt', merged: true, limitBits: 0x1e0fffff },
    // its miners take nothing below 0.01 a kilobyte (DEFAULT_BLOCK_MIN_TX_FEE)
    feeRates: { least: 1_000_000n, highest: 500_000_000n },
    coinbaseMaturity: 240,
    blockBytes: 2_000_000,
    blockSeconds: 60,
    dialect: { ...PLAIN_DIALECT, rawBlock: false },
    extendedKeys: [
      { form: 'dgub', public: 0x02facafd, private: 0x02fac398, mainnet: true },
      { form: 'tgub', public: 0x0432a9a8, private: 0x0432a243, mainnet: false },
    ],
    unpayablePrefixes: [],
  },
  evm: null,
} as const satisfies CurrencyDefinition;
