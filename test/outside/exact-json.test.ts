import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseExact, parseNumbersAsText } from '../../src/outside/exact-json.ts';

/** Any number that JSON can say, as text. */
const digits = fc.stringMatching(/^\d{1,30}$/);
const numberText = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits.map((text) => text.replace(/^0+(?=\d)/, '')),
    fc.option(digits, { nil: null }),
    fc.option(fc.stringMatching(/^[eE][+-]?\d{1,3}$/), { nil: null }),
  )
  .map(([sign, whole, fraction, exponent]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent ?? ''}`);

describe('JSON without loss', () => {
  test('of a node: whole numbers that a double holds are numbers, every other number is its text', () => {
    const text = `{"value": 0.00000001, "sum":21000000.00000000,"n":0,"height": 800000, "work":9007199254740993, "rate":1e-8,
      "big":-12345678901234567890,"most":9007199254740991,"list":[1.0, 2,-3, 1E2],"text":"0.1,16:1234567890123456.5","none":null,"yes":true}`;
    expect(parseExact(text)).toEqual({
      value: '0.00000001',
      sum: '21000000.00000000',
      n: 0,
      height: 800_000,
      work: '9007199254740993',
      rate: '1e-8',
      big: '-12345678901234567890',
      most: 9_007_199_254_740_991,
      list: ['1.0', 2, -3, '1E2'],
      text: '0.1,16:1234567890123456.5',
      none: null,
      yes: true,
    });
  });

  test('of an exchange: every number is its text', () => {
    expect(parseNumbersAsText('[1, -0, 65000.10, 1.5E+3, {"1": 2.50}, "3"]')).toEqual([
      '1',
      '-0',
      '65000.10',
      '1.5E+3',
      { 1: '2.50' },
      '3',
    ]);
  });

  test('any number keeps its text, wherever it stands', () => {
    fc.assert(
      fc.property(fc.array(numberText, { minLength: 1, maxLength: 20 }), (numbers) => {
        const text = `{"all":[${numbers.join(' ,')}],"last": ${numbers.at(-1)}}`;
        expect(parseNumbersAsText(text)).toEqual({ all: numbers, last: numbers.at(-1) });
        const { all } = parseExact(text) as { all: (string | number)[] };
        for (const [n, value] of all.entries()) {
          const source = numbers[n] as string;
          if (typeof value === 'string') expect(value).toBe(source);
          else expect([Number.isSafeInteger(value), BigInt(source)]).toEqual([true, BigInt(value)]);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('of keys that come twice the last counts; a key may be __proto__ and changes nothing', () => {
    expect(parseExact('{"a":0.1,"a":0.2}')).toEqual({ a: '0.2' });
    const parsed = parseExact('{"__proto__":{"x":0.1}}') as object;
    expect([Object.getPrototypeOf(parsed) === Object.prototype, Object.keys(parsed)]).toEqual([true, ['__proto__']]);
  });

  test.each(['', '{"a":01}', '[1.]', '[.5]', '[1e]', '[+1]', '[NaN]', '{"a":0.1', "['a', 0.5]", '[0.5,]'])(
    '%j is refused',
    (text) => {
      expect(() => parseExact(text)).toThrow(SyntaxError);
      expect(() => parseNumbersAsText(text)).toThrow(SyntaxError);
    },
  );
});
