import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CURRENCIES, CURRENCY_CODES } from '../../src/core/currency.ts';
import { formatAmount } from '../../src/core/money.ts';
import {
  cryptoForUsdDown,
  cryptoForUsdExactUp,
  cryptoForUsdUp,
  formatRate,
  isWorth,
  parseRate,
  usdForCryptoDown,
  usdForPartsUp,
} from '../../src/core/rate.ts';

const codes = fc.constantFrom(...CURRENCY_CODES);
const rates = fc.bigInt({ min: 1n, max: 10n ** 18n });
const cents = fc.bigInt({ min: 0n, max: 10_000_000n });

/** An answer's amount or price as a fraction of 10^-26, for comparisons without rounding. */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(26, '0'));
}

describe('a price', () => {
  it.each([
    ['65000.00', 6_500_000_000_000n, '65000.00'],
    ['65000', 6_500_000_000_000n, '65000.00'],
    ['0.12345678', 12_345_678n, '0.12345678'],
    ['0.1', 10_000_000n, '0.10'],
    ['80.040', 8_004_000_000n, '80.04'],
    ['0.00000001', 1n, '0.00000001'],
    ['999999999999999.99999999', 10n ** 23n - 1n, '999999999999999.99999999'],
  ])('%s is read exactly and written with 2 to 8 decimals', (text, rate, written) => {
    expect(parseRate(text)).toBe(rate);
    expect(formatRate(rate)).toBe(written);
  });

  it.each([
    '0',
    '0.00',
    '-1',
    '+1',
    '1e5',
    'NaN',
    'Infinity',
    '',
    ' 1',
    '1 ',
    '1.',
    '.1',
    '1.123456789',
    '1000000000000000',
    '1,5',
    '0x1',
  ])('%j is no price', (text) => {
    expect(parseRate(text)).toBeNull();
  });

  it('is read back as it was written, with 2 to 8 decimals', () => {
    fc.assert(
      fc.property(rates, (rate) => {
        const text = formatRate(rate);
        expect(parseRate(text)).toBe(rate);
        expect(text).toMatch(/^\d+\.\d{2,8}$/);
        expect(text).not.toMatch(/\.\d{2}\d*0$/);
      }),
    );
  });
});

describe('a quote', () => {
  it.each([
    [2500n, 'BTC', '65000.00', '0.00038462'],
    [2500n, 'LTC', '80.00', '0.31250000'],
    [50n, 'USDT', '1.0003', '0.499851'],
    [2500n, 'ETH', '3000.00', '0.00833334'],
    [1n, 'DOGE', '0.08', '0.12500000'],
    [10_000_000n, 'BTC', '0.01', '10000000.00000000'],
  ] as const)('of %s cents in %s at %s asks for %s', (usdMinor, currency, rate, expected) => {
    expect(formatAmount(cryptoForUsdUp(usdMinor, currency, parseRate(rate)!), currency)).toBe(expected);
  });

  it('keeps its promise: amount × rate covers the dollars, one unit of its last decimal less does not', () => {
    fc.assert(
      fc.property(codes, fc.bigInt({ min: 1n, max: 10_000_000n }), rates, (currency, usdMinor, rate) => {
        const { decimals, quoteDecimals } = CURRENCIES[currency];
        const unit = 10n ** BigInt(decimals - quoteDecimals);
        const asked = cryptoForUsdUp(usdMinor, currency, rate);
        expect(asked % unit).toBe(0n);
        // as the merchant's developer checks it: with the texts of the answer
        const price = scaled(formatRate(rate));
        const usd = scaled(formatAmount(usdMinor, 'USD')) * 10n ** 26n;
        expect(scaled(formatAmount(asked, currency)) * price >= usd).toBe(true);
        expect(scaled(formatAmount(asked - unit, currency)) * price < usd).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('is worth at least what was asked for, and one unit less than the rounded-down amount would be below', () => {
    fc.assert(
      fc.property(codes, cents, rates, (currency, usdMinor, rate) => {
        expect(usdForCryptoDown(cryptoForUsdUp(usdMinor, currency, rate), currency, rate) >= usdMinor).toBe(true);
        expect(usdForCryptoDown(cryptoForUsdDown(usdMinor, currency, rate), currency, rate) <= usdMinor).toBe(true);
        expect(cryptoForUsdDown(usdMinor, currency, rate) <= cryptoForUsdUp(usdMinor, currency, rate)).toBe(true);
      }),
    );
  });
});

describe('what an amount is worth', () => {
  it('differs by at most a cent between its two directions, and grows with the amount', () => {
    const amounts = fc.bigInt({ min: 0n, max: 10n ** 24n });
    fc.assert(
      fc.property(codes, amounts, amounts, rates, (currency, a, b, rate) => {
        const down = usdForCryptoDown(a, currency, rate);
        const up = usdForPartsUp([{ minor: a, rate: rate }], currency);
        expect(up === down || up === down + 1n).toBe(true);
        // never more together than separately: nobody gains by splitting a payment
        expect(down + usdForCryptoDown(b, currency, rate) <= usdForCryptoDown(a + b, currency, rate)).toBe(true);
        expect(
          up + usdForPartsUp([{ minor: b, rate: rate }], currency) >= usdForPartsUp([{ minor: a + b, rate: rate }], currency),
        ).toBe(true);
      }),
    );
  });

  it('is exact where it can be', () => {
    expect(usdForCryptoDown(100_000_000n, 'BTC', parseRate('65000.00')!)).toBe(6_500_000n);
    expect(usdForPartsUp([{ minor: 100_000_000n, rate: parseRate('65000.00')! }], 'BTC')).toBe(6_500_000n);
    expect(usdForCryptoDown(1n, 'BTC', parseRate('65000.00')!)).toBe(0n);
    expect(usdForPartsUp([{ minor: 1n, rate: parseRate('65000.00')! }], 'BTC')).toBe(1n);
    expect(usdForCryptoDown(10n ** 18n, 'ETH', parseRate('3000.01')!)).toBe(300_001n);
  });
});

it('what many amounts are worth together is rounded up once', () => {
  const rate = parseRate('65000.00')!;
  const dust = Array.from({ length: 1_000 }, () => ({ minor: 1n, rate }));
  expect(usdForPartsUp(dust, 'BTC')).toBe(65n);
  expect(usdForPartsUp([...dust, { minor: 1n, rate: 1n }], 'BTC')).toBe(66n);
  expect(usdForPartsUp([], 'BTC')).toBe(0n);
});

describe('to the last unit', () => {
  it('what must be given for dollars is rounded up to the minor unit, whatever quotes are rounded to', () => {
    const given = (cents: bigint, dollars: bigint) => cryptoForUsdExactUp(cents, 'BTC', dollars * 10n ** 8n);
    expect([given(1n, 100_000n), given(1n, 30_000n), given(100_00n, 65_000n)]).toEqual([10n, 34n, 153_847n]);
  });

  it('amounts are worth another one exactly, and not if they are the least part less', () => {
    const wanted = { minor: 3n, rate: 7n };
    expect(isWorth([{ minor: 21n, rate: 1n }], 'BTC', wanted, 0n)).toBe(true);
    expect(isWorth([{ minor: 4n, rate: 5n }], 'BTC', wanted, 0n)).toBe(false);
  });
});
