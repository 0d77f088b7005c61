// The seven currencies (and Lightning as a way to pay BTC), one row each: everything that differs between coins is data here.
// Enums, balances, watchers, address encoders and lists derive from these rows; every room reads them.

import { type AddressParameters, type ByNetwork, PLAIN_BLOCKS, SEGWIT_BLOCKS, type UtxoParameters } from './utxo-parameters.ts';

export type { AddressParameters, UtxoParameters } from './utxo-parameters.ts';

export type Network = 'mainnet' | 'testnet' | 'regtest' | 'sandbox';
export type Family = 'utxo' | 'evm-native' | 'evm-token';
/** The codes of a balance, in the order in which balances are answered. */
export type CurrencyCode = 'BTC' | 'LTC' | 'ETH' | 'BCH' | 'DASH' | 'DOGE' | 'USDT';
export type UtxoCode = 'BTC' | 'LTC' | 'BCH' | 'DASH' | 'DOGE';
/** What a ledger amount can be in: the seven, and the dollars of the bank. */
export type LedgerCurrency = CurrencyCode | 'USD';
/** What a customer can be asked to pay with. */
export type PaymentMethod = CurrencyCode | 'BTC-LN';

export type CurrencyRow = {
  readonly code: CurrencyCode;
  readonly name: string;
  readonly family: Family;
  readonly decimals: number;
  /** Decimals of a quote (`crypto_amount`); ETH is quoted in 8 of its 18. */
  readonly quoteDecimals: number;
  /** Smallest amount that may be asked for, in minor units (behaviour §3). */
  readonly dustMinor: bigint;
  /** Scheme of the payment URI: BIP 321, or ERC-681 for Ethereum. */
  readonly uriScheme: string;
  readonly utxo: UtxoParameters | null;
};

const bitcoinLike = (
  mainnet: AddressParameters,
  test: AddressParameters,
  regtest: AddressParameters,
): ByNetwork<AddressParameters> => ({
  mainnet,
  testnet: test,
  regtest,
});
const parameters = (
  bech32: string | null,
  pubKeyHash: number,
  scriptHash: number,
  wif: number,
  cashaddr: string | null = null,
): AddressParameters => ({ bech32, pubKeyHash, scriptHash, wif, cashaddr });

const ROWS: readonly CurrencyRow[] = [
  {
    code: 'BTC',
    name: 'Bitcoin',
    family: 'utxo',
    decimals: 8,
    quoteDecimals: 8,
    dustMinor: 546n,
    uriScheme: 'bitcoin',
    utxo: {
      purpose: 84,
      slip44: 0,
      addressKind: 'p2wpkh',
      address: bitcoinLike(
        parameters('bc', 0x00, 0x05, 0x80),
        parameters('tb', 0x6f, 0xc4, 0xef),
        parameters('bcrt', 0x6f, 0xc4, 0xef),
      ),
      genesis: {
        mainnet: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
        testnet: '000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943',
        regtest: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
      },
      split: { height: 478_559, hash: '00000000000000000019f112ec0a9982926f1258cdcc558dd7c3b7e5dc7fa148' },
      blockFeatures: SEGWIT_BLOCKS,
      coinbaseMaturity: 100,
      blockSeconds: 600,
    },
  },
  {
    code: 'LTC',
    name: 'Litecoin',
    family: 'utxo',
    decimals: 8,
    quoteDecimals: 8,
    dustMinor: 5460n,
    uriScheme: 'litecoin',
    utxo: {
      purpose: 84,
      slip44: 2,
      addressKind: 'p2wpkh',
      address: bitcoinLike(
        parameters('ltc', 0x30, 0x32, 0xb0),
        parameters('tltc', 0x6f, 0x3a, 0xef),
        parameters('rltc', 0x6f, 0x3a, 0xef),
      ),
      genesis: {
        mainnet: '12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2',
        testnet: '4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0',
        regtest: '530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9',
      },
      blockFeatures: { ...SEGWIT_BLOCKS, mweb: true, maxMoney: 84_000_000n * 10n ** 8n },
      coinbaseMaturity: 100,
      blockSeconds: 150,
    },
  },
  {
    code: 'ETH',
    name: 'Ethereum',
    family: 'evm-native',
    decimals: 18,
    quoteDecimals: 8,
    dustMinor: 0n,
    uriScheme: 'ethereum',
    utxo: null,
  },
  {
    code: 'BCH',
    name: 'Bitcoin Cash',
    family: 'utxo',
    decimals: 8,
    quoteDecimals: 8,
    dustMinor: 546n,
    uriScheme: 'bitcoincash',
    utxo: {
      purpose: 44,
      slip44: 145,
      addressKind: 'cashaddr-p2pkh',
      address: bitcoinLike(
        parameters(null, 0x00, 0x05, 0x80, 'bitcoincash'),
        parameters(null, 0x6f, 0xc4, 0xef, 'bchtest'),
        parameters(null, 0x6f, 0xc4, 0xef, 'bchreg'),
      ),
      genesis: {
        mainnet: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
        testnet: '000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943',
        regtest: '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206',
      },
      split: { height: 478_559, hash: '000000000000000000651ef99cb9fcbe0dadde1d424bd9f15ff20136191a5eec' },
      blockFeatures: { ...PLAIN_BLOCKS, tokens: true },
      coinbaseMaturity: 100,
      blockSeconds: 600,
    },
  },
  {
    code: 'DASH',
    name: 'Dash',
    family: 'utxo',
    decimals: 8,
    quoteDecimals: 8,
    dustMinor: 546n,
    uriScheme: 'dash',
    utxo: {
      purpose: 44,
      slip44: 5,
      addressKind: 'p2pkh',
      address: bitcoinLike(
        parameters(null, 0x4c, 0x10, 0xcc),
        parameters(null, 0x8c, 0x13, 0xef),
        parameters(null, 0x8c, 0x13, 0xef),
      ),
      genesis: {
        mainnet: '00000ffd590b1485b3caadc19b22e6379c733355108f107a430458cdf3407ab6',
        testnet: '00000bafbc94add76cb75e2ec92894837288a481e5c005f6563d91623bf8bc2c',
        regtest: '000008ca1832a4baf228eb1553c03d3a2c8e02399550dd6ea8d65cec3ef23d2e',
      },
      blockFeatures: { ...PLAIN_BLOCKS, specialTransactions: true, headerHash: 'x11' },
      coinbaseMaturity: 100,
      blockSeconds: 156,
    },
  },
  {
    code: 'DOGE',
    name: 'Dogecoin',
    family: 'utxo',
    decimals: 8,
    quoteDecimals: 8,
    dustMinor: 1_000_000n,
    uriScheme: 'dogecoin',
    utxo: {
      purpose: 44,
      slip44: 3,
      addressKind: 'p2pkh',
      address: bitcoinLike(
        parameters(null, 0x1e, 0x16, 0x9e),
        parameters(null, 0x71, 0xc4, 0xf1),
        parameters(null, 0x6f, 0xc4, 0xef),
      ),
      genesis: {
        mainnet: '1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691',
        testnet: 'bb0a78264637406b6360aad926284d544d7049f45189db5664f3c4d07350559e',
        regtest: '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
      },
      blockFeatures: { ...PLAIN_BLOCKS, auxpow: true, maxMoney: 10_000_000_000n * 10n ** 8n },
      coinbaseMaturity: 240,
      blockSeconds: 60,
    },
  },
  {
    code: 'USDT',
    name: 'Tether USD',
    family: 'evm-token',
    decimals: 6,
    quoteDecimals: 6,
    dustMinor: 0n,
    uriScheme: 'ethereum',
    utxo: null,
  },
];

/** All currencies by code, in the order of a balances answer. */
export const CURRENCIES: Readonly<Record<CurrencyCode, CurrencyRow>> = Object.fromEntries(
  ROWS.map((row) => [row.code, row]),
) as Record<CurrencyCode, CurrencyRow>;
export const CURRENCY_CODES: readonly CurrencyCode[] = ROWS.map((row) => row.code);
/** The coins whose chain this version reads: the others are known codes that are not available yet (503). */
export const WATCHED_CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];

/** A coin of Bitcoin's family with its parameters; throws for any other currency. */
export function utxoRow(code: CurrencyCode): CurrencyRow & { utxo: UtxoParameters } {
  const row = CURRENCIES[code];
  if (row.utxo === null) throw new Error(`${code} is not a UTXO coin`);
  return row as CurrencyRow & { utxo: UtxoParameters };
}

/** The chain parameters a network uses: the sandbox is a regtest world. */
export function chainNetwork(network: Network): 'mainnet' | 'testnet' | 'regtest' {
  return network === 'sandbox' ? 'regtest' : network;
}

/** Decimals of the minor unit of a ledger currency. */
export function decimalsOf(currency: LedgerCurrency): number {
  return currency === 'USD' ? 2 : CURRENCIES[currency].decimals;
}

const ALIASES: Readonly<Record<string, PaymentMethod>> = {
  LN: 'BTC-LN',
  LIGHTNING: 'BTC-LN',
  BTC_LN: 'BTC-LN',
  'BTC-LIGHTNING': 'BTC-LN',
  'BTC-LN': 'BTC-LN',
  'USDT-ERC20': 'USDT',
};

/** What `crypto_selected` means, any case and with its aliases; null for a code nobody knows. */
export function paymentMethod(text: string): PaymentMethod | null {
  // toUpperCase would make I of a dotless ı
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null;
  const code = text.toUpperCase();
  if (Object.hasOwn(CURRENCIES, code)) return code as CurrencyCode;
  return Object.hasOwn(ALIASES, code) ? (ALIASES[code] as PaymentMethod) : null;
}
