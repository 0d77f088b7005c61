import { describe, expect, it } from 'vitest';
import {
  CURRENCIES,
  CURRENCY_CODES,
  type CurrencyCode,
  chainNetwork,
  decimalsOf,
  paymentMethod,
  UTXO_CODES,
  utxoRow,
} from '../../src/core/currency.ts';

describe('the table of currencies', () => {
  it('has the seven codes in the order of a balances answer', () => {
    expect(CURRENCY_CODES).toEqual(['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT']);
    expect(Object.keys(CURRENCIES)).toEqual([...CURRENCY_CODES, 'BTC-LN']);
    for (const code of CURRENCY_CODES) expect(CURRENCIES[code].code).toBe(code);
  });

  it('has the decimals and the dust limits of the specification', () => {
    const facts = CURRENCY_CODES.map((code) => [
      code,
      CURRENCIES[code].decimals,
      CURRENCIES[code].quoteDecimals,
      CURRENCIES[code].dustMinor,
    ]);
    expect(facts).toEqual([
      ['BTC', 8, 8, 546n],
      ['LTC', 8, 8, 5460n],
      ['ETH', 18, 8, 0n],
      ['BCH', 8, 8, 546n],
      ['DASH', 8, 8, 546n],
      ['DOGE', 8, 8, 1_000_000n],
      ['USDT', 6, 6, 0n],
    ]);
    expect(decimalsOf('USD')).toBe(2);
  });

  it('gives every currency of Bitcoin’s family all that its family needs', () => {
    for (const code of CURRENCY_CODES) {
      const row = CURRENCIES[code];
      expect(row.utxo !== null).toBe(row.family === 'utxo');
      if (row.utxo === null) continue;
      for (const network of ['mainnet', 'testnet', 'regtest'] as const) {
        expect(row.utxo.genesis[network]).toMatch(/^[0-9a-f]{64}$/);
        const { bech32, cashaddr } = row.utxo.address[network];
        expect(bech32 !== null).toBe(row.utxo.addressKind === 'p2wpkh');
        expect(cashaddr !== null).toBe(row.utxo.addressKind === 'cashaddr-p2pkh');
      }
      expect(row.utxo.purpose).toBe(row.utxo.addressKind === 'p2wpkh' ? 84 : 44);
      expect(row.utxo.coinbaseMaturity).toBe(code === 'DOGE' ? 240 : 100);
    }
  });

  it('distinguishes the networks of a currency by genesis, and the currencies by their SLIP-44 number', () => {
    const currencies = CURRENCY_CODES.flatMap((code) => (CURRENCIES[code].utxo === null ? [] : [utxoRow(code)]));
    expect(new Set(currencies.map((row) => row.utxo.slip44)).size).toBe(currencies.length);
    for (const row of currencies) expect(new Set(Object.values(row.utxo.genesis)).size).toBe(3);
  });

  it('refuses parameters for a currency that is not of the family', () => {
    expect(() => utxoRow('ETH')).toThrow('ETH is not a UTXO currency');
    for (const code of UTXO_CODES) expect(utxoRow(code).code).toBe(code);
  });

  it('treats the sandbox as regtest', () => {
    expect(['mainnet', 'testnet', 'regtest', 'sandbox'].map((network) => chainNetwork(network as 'sandbox'))).toEqual([
      'mainnet',
      'testnet',
      'regtest',
      'regtest',
    ]);
  });
});

describe('crypto_selected', () => {
  it.each(
    CURRENCY_CODES.flatMap((code) =>
      [code, code.toLowerCase(), code[0] + code.slice(1).toLowerCase()].map((text) => [text, code] as const),
    ),
  )('%s means %s', (text, code: CurrencyCode) => {
    expect(paymentMethod(text)).toBe(code);
  });

  it.each(['BTC-LN', 'LN', 'LIGHTNING', 'BTC_LN', 'BTC-LIGHTNING', 'ln', 'Lightning', 'btc-ln'])('%s means Lightning', (text) => {
    expect(paymentMethod(text)).toBe('BTC-LN');
  });

  it('knows USDT by its other name', () => {
    expect(paymentMethod('usdt-erc20')).toBe('USDT');
  });

  it.each([
    '',
    ' BTC',
    'BTC ',
    'XMR',
    'USD',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'ßTC',
    'BTC\u0000',
    'USDC',
  ])('%j means nothing', (text) => {
    expect(paymentMethod(text)).toBeNull();
  });
});
