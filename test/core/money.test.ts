import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CURRENCY_CODES, decimalsOf, type LedgerCurrency } from '../../src/core/currency.ts';
import {
  atLeastZero,
  basisPointsDown,
  basisPointsUp,
  formatAmount,
  formatMinor,
  greatest,
  least,
  minus,
  mulDivDown,
  mulDivUp,
  negated,
  parseAmount,
  plus,
  sum,
} from '../../src/core/money.ts';

const LEDGER: readonly LedgerCurrency[] = [...CURRENCY_CODES, 'USD'];
const amounts = fc.bigInt({ min: 0n, max: 10n ** 36n });
const signed = fc.bigInt({ min: -(10n ** 36n), max: 10n ** 36n });

describe('reading an amount', () => {
  it.each([
    ['25.00', 2, 2500n],
    ['25', 2, 2500n],
    ['25.5', 2, 2550n],
    ['0', 2, 0n],
    ['0.00', 2, 0n],
    ['0.00000001', 8, 1n],
    ['21000000.00000000', 8, 2_100_000_000_000_000n],
    ['999999999999999999.999999999999999999', 18, 10n ** 36n - 1n],
    ['1', 0, 1n],
  ])('takes %s with %i decimals', (text, decimals, minor) => {
    expect(parseAmount(text, decimals)).toEqual({ minor });
  });

  it.each([
    '',
    ' ',
    '.5',
    '5.',
    '.',
    '00',
    '01.00',
    '-1.00',
    '+1.00',
    '1e3',
    '1E3',
    '0x10',
    '1,00',
    '1_000',
    '1.00 ',
    ' 1.00',
    '1.00\n',
    '\t1.00',
    'NaN',
    'Infinity',
    '1000000000000000000',
    '1.0000000000000000000',
    '1.0.0',
    '１.00',
    '٣',
    '1.00\u0000',
  ])('refuses %j as malformed', (text) => {
    expect(parseAmount(text, 18)).toEqual({ problem: 'malformed' });
  });

  it.each([
    ['10.000', 2],
    ['10.001', 2],
    ['1.000000000', 8],
    ['1.0', 0],
  ])('refuses more decimals than the unit has, even zeros: %s', (text, decimals) => {
    expect(parseAmount(text, decimals)).toEqual({ problem: 'too-many-decimals' });
  });

  it('reads back what was written, in every unit', () => {
    const cases = fc.constantFrom(...LEDGER).chain((currency) => {
      const limit = 10n ** BigInt(18 + decimalsOf(currency)) - 1n;
      return fc.tuple(fc.constant(currency), fc.bigInt({ min: 0n, max: limit }));
    });
    fc.assert(
      fc.property(cases, ([currency, minor]) => {
        expect(parseAmount(formatAmount(minor, currency), decimalsOf(currency))).toEqual({ minor });
      }),
    );
  });

  it('reads exactly the texts of the documented form, and never throws', () => {
    const form = /^(0|[1-9]\d{0,17})(\.\d{1,18})?$/;
    const characters = fc.constantFrom(...'0123456789.-+eE, _'.split(''));
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 40 }), fc.integer({ min: 0, max: 18 }), (text, decimals) => {
        const parsed = parseAmount(text, decimals);
        if (!form.test(text)) expect(parsed).toEqual({ problem: 'malformed' });
        else if ((text.split('.')[1] ?? '').length > decimals) expect(parsed).toEqual({ problem: 'too-many-decimals' });
        else expect(parsed).toHaveProperty('minor');
      }),
      { numRuns: 2000 },
    );
  });
});

describe('writing an amount', () => {
  it.each([
    [0n, 'BTC', '0.00000000'],
    [1n, 'BTC', '0.00000001'],
    [123456789n, 'LTC', '1.23456789'],
    [0n, 'USDT', '0.000000'],
    [0n, 'USD', '0.00'],
    [5n, 'USD', '0.05'],
    [-5n, 'USD', '-0.05'],
    [-250000000n, 'DOGE', '-2.50000000'],
    [0n, 'ETH', '0.00000000'],
    [10n ** 18n, 'ETH', '1.00000000'],
    [1n, 'ETH', '0.000000000000000001'],
    [1_500_000_000n, 'ETH', '0.0000000015'],
    [123_456_780_000_000_000n, 'ETH', '0.12345678'],
    [123_456_700_000_000_000n, 'ETH', '0.12345670'],
    [123_456_789_000_000_000n, 'ETH', '0.123456789'],
    [-(10n ** 18n), 'ETH', '-1.00000000'],
  ] as const)('%s units of %s are %s', (minor, currency, text) => {
    expect(formatAmount(minor, currency)).toBe(text);
  });

  it('writes no point where there are no decimals', () => {
    expect(formatMinor(42n, 0)).toBe('42');
    expect(formatMinor(-42n, 0)).toBe('-42');
  });

  it('has all decimals of its currency; ETH at least 8 and no zero behind them', () => {
    fc.assert(
      fc.property(fc.constantFrom(...LEDGER), signed, (currency, minor) => {
        const fraction = formatAmount(minor, currency).split('.')[1] ?? '';
        if (currency !== 'ETH') expect(fraction).toHaveLength(decimalsOf(currency));
        else {
          expect(fraction.length).toBeGreaterThanOrEqual(8);
          if (fraction.length > 8) expect(fraction).not.toMatch(/0$/);
        }
      }),
    );
  });
});

describe('arithmetic on amounts', () => {
  it('rounds down and up around the exact quotient', () => {
    fc.assert(
      fc.property(amounts, amounts, fc.bigInt({ min: 1n, max: 10n ** 30n }), (a, b, c) => {
        const down = mulDivDown(a, b, c);
        const up = mulDivUp(a, b, c);
        expect(down * c <= a * b && a * b < (down + 1n) * c).toBe(true);
        expect(up * c >= a * b && (up === 0n || (up - 1n) * c < a * b)).toBe(true);
        expect(up - down).toBe((a * b) % c === 0n ? 0n : 1n);
      }),
    );
  });

  it('takes basis points down, never more than the amount', () => {
    expect(basisPointsDown(10_000n, 100)).toBe(100n);
    expect(basisPointsDown(99n, 100)).toBe(0n);
    expect([0n, 1n, 10_000n, 10_001n].map((amount) => basisPointsUp(amount, 100))).toEqual([0n, 1n, 100n, 101n]);
    fc.assert(
      fc.property(amounts, fc.integer({ min: 0, max: 10_000 }), (amount, points) => {
        const part = basisPointsDown(amount, points);
        expect(part >= 0n && part <= amount).toBe(true);
        expect(part).toBe(mulDivDown(amount, BigInt(points), 10_000n));
      }),
    );
  });

  it('adds up whatever the order', () => {
    fc.assert(
      fc.property(fc.array(signed), (list) => {
        expect(sum(list)).toBe(list.reduce((total, amount) => plus(total, amount), 0n));
        expect(sum(list.toReversed())).toBe(sum(list));
        expect(plus(sum(list), negated(sum(list)))).toBe(0n);
      }),
    );
    expect(sum([])).toBe(0n);
  });

  it('knows the lesser, the greater and the minimum at zero', () => {
    fc.assert(
      fc.property(signed, signed, (a, b) => {
        expect(plus(least(a, b), greatest(a, b))).toBe(plus(a, b));
        expect(least(a, b) <= greatest(a, b)).toBe(true);
        expect(atLeastZero(minus(a, b))).toBe(a > b ? a - b : 0n);
      }),
    );
  });
});
