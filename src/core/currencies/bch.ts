// Bitcoin Cash; its parameters are those of Bitcoin Cash Node's chainparams.cpp.
import { type CurrencyDefinition, depths } from './definition.ts';
import { addresses, PLAIN_BLOCKS, PLAIN_DIALECT, PLAIN_FEES } from './utxo.ts';

export const BCH = {
  code: 'BCH',
  name: 'Bitcoin Cash',
  family: 'utxo',
  decimals: 8,
  quoteDecimals: 8,
  dustMinor: 546n,
  uriScheme: 'bitcoincash',
  aliases: [],
  requiredDepths: depths(1, 3, 6, 10, 10),
  rateSymbols: { kraken: ['BCHUSD', 'BCHUSD'], coinbase: 'BCH-USD', bitstamp: 'bchusd', bitfinex: 'tBCHN:USD' },
  payouts: {},
  achOrder: null,
  utxo: {
    purpose: 44,
    slip44: 145,
    addressKind: 'cashaddr-p2pkh',
    address: {
      mainnet: addresses(0x00, 0x05, 0x80, { cashaddr: 'bitcoincash' }),
      testnet: addresses(0x6f, 0xc4, 0xef, { cashaddr: 'bchtest' }),
      regtest: addresses(0x6f, 0xc4, 0xef, { cashaddr: 'bchreg' }),
    },
    genesis: {
      mainnet: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
      testnet: '000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943',
      regtest: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
    },
    // where Bitcoin, Bitcoin SV and eCash went other ways
    splits: [
      { height: 478_559, hash: '000000000000000000651ef99cb9fcbe0dadde1d424bd9f15ff20136191a5eec' },
      { height: 556_767, hash: '0000000000000000004626ff6e3b936941d341c5932ece4357eeccac44e6d56c' },
      { height: 661_648, hash: '0000000000000000029e471c41818d24b8b74c911071c4ef0b4a0509f9b5a8ce' },
    ],
    blockFeatures: { ...PLAIN_BLOCKS, tokens: true },
    work: { hash: 'header', merged: false, limitBits: 0x1d00ffff },
    feeRates: PLAIN_FEES,
    coinbaseMaturity: 100,
    blockBytes: 32_000_000,
    blockSeconds: 600,
    dialect: { ...PLAIN_DIALECT, doubleSpendProofs: true },
    extendedKeys: [],
    unpayablePrefixes: [],
  },
  evm: null,
} as const satisfies CurrencyDefinition;
