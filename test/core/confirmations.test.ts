import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { confirmationsToReach, finalDepth, reaches, requiredDepth, requiredDepthsOfTiers } from '../../src/core/confirmations.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../../src/core/currency.ts';

/** The table of behaviour §3: below 100, 1,000, 10,000 USD and above, then final. */
const TABLE: Record<CurrencyCode, readonly (readonly [number, string | null])[]> = {
  BTC: [
    [1, null],
    [2, null],
    [3, null],
    [6, null],
    [6, null],
  ],
  LTC: [
    [2, null],
    [3, null],
    [6, null],
    [12, null],
    [12, null],
  ],
  BCH: [
    [1, null],
    [3, null],
    [6, null],
    [10, null],
    [10, null],
  ],
  DASH: [
    [2, 'instantsend'],
    [2, 'instantsend'],
    [6, 'chainlock'],
    [12, 'chainlock'],
    [12, 'chainlock'],
  ],
  DOGE: [
    [6, null],
    [10, null],
    [20, null],
    [60, null],
    [60, null],
  ],
  ETH: [
    [6, 'chainlock'],
    [12, 'chainlock'],
    [32, 'chainlock'],
    [65, 'chainlock'],
    [65, 'chainlock'],
  ],
  USDT: [
    [6, 'chainlock'],
    [12, 'chainlock'],
    [32, 'chainlock'],
    [65, 'chainlock'],
    [65, 'chainlock'],
  ],
};
/** The first and the last cent of each tier. */
const TIERS = [
  [1n, 9_999n],
  [10_000n, 99_999n],
  [100_000n, 999_999n],
  [1_000_000n, 10_000_000n],
] as const;
const plain = (confirmations: number) => ({ confirmations, coinbase: false, lock: null });
const codes = fc.constantFrom(...CURRENCY_CODES);

describe('required confirmations', () => {
  it.each(CURRENCY_CODES)('of %s are those of the table, to the cent', (currency) => {
    TIERS.forEach(([low, high], tier) => {
      const [depth, lock] = TABLE[currency][tier]!;
      for (const usdMinor of [low, high]) expect(requiredDepth(currency, usdMinor)).toMatchObject({ depth, lock });
    });
    const [depth, lock] = TABLE[currency][4]!;
    expect(finalDepth(currency)).toMatchObject({ depth, lock });
  });

  it('take the highest tier when the value is not known', () => {
    for (const currency of CURRENCY_CODES) {
      expect(requiredDepth(currency, null)).toEqual(requiredDepth(currency, 10n ** 12n));
    }
  });

  it('never fall with the value and never exceed the final depth', () => {
    const values = fc.bigInt({ min: 0n, max: 20_000_000n });
    fc.assert(
      fc.property(codes, values, values, (currency, a, b) => {
        const [less, more] = a < b ? [a, b] : [b, a];
        expect(requiredDepth(currency, less).depth).toBeLessThanOrEqual(requiredDepth(currency, more).depth);
        expect(requiredDepth(currency, more).depth).toBeLessThanOrEqual(finalDepth(currency).depth);
      }),
    );
  });
});

describe('reaching a depth', () => {
  it('takes exactly that many confirmations', () => {
    fc.assert(
      fc.property(codes, fc.bigInt({ min: 1n, max: 20_000_000n }), (currency, usdMinor) => {
        const required = requiredDepth(currency, usdMinor);
        expect(reaches(currency, plain(required.depth - 1), required)).toBe(false);
        expect(reaches(currency, plain(required.depth), required)).toBe(required.onlyLock !== true);
        const taken = required.onlyLock === true ? Number.POSITIVE_INFINITY : required.depth;
        expect(confirmationsToReach(currency, plain(0), required)).toBe(taken);
      }),
    );
  });

  it('takes a lock instead where the table names one: a ChainLock also stands for InstantSend, not the other way round', () => {
    const small = requiredDepth('DASH', 5_000n);
    const large = requiredDepth('DASH', 500_000n);
    expect(reaches('DASH', { ...plain(0), lock: 'instantsend' }, small)).toBe(true);
    expect(reaches('DASH', { ...plain(0), lock: 'chainlock' }, small)).toBe(true);
    expect(reaches('DASH', { ...plain(0), lock: 'instantsend' }, large)).toBe(false);
    expect(reaches('DASH', { ...plain(1), lock: 'chainlock' }, large)).toBe(true);
    expect(reaches('DASH', { ...plain(6), lock: 'instantsend' }, large)).toBe(true);
    expect(reaches('BTC', { ...plain(0), lock: 'chainlock' }, requiredDepth('BTC', 1n))).toBe(false);
  });

  it.each(['ETH', 'USDT'] as const)(
    'for the largest amounts of %s takes the node’s word that their block is finalized, at any depth',
    (currency) => {
      const largest = requiredDepth(currency, 10_000_00n);
      expect(reaches(currency, plain(1_000), largest)).toBe(false);
      expect(reaches(currency, { ...plain(3), lock: 'chainlock' }, largest)).toBe(true);
      expect(reaches(currency, { ...plain(3), lock: 'chainlock' }, requiredDepth(currency, 1n))).toBe(true);
      expect(reaches(currency, { ...plain(3), lock: 'instantsend' }, requiredDepth(currency, 1n))).toBe(false);
    },
  );

  it.each([
    ['BTC', 100],
    ['LTC', 100],
    ['BCH', 100],
    ['DASH', 100],
    ['DOGE', 240],
  ] as const)('waits for a coinbase output of %s until it is mature, whatever locks it', (currency, maturity) => {
    for (const usdMinor of [1n, 10_000_000n]) {
      const required = requiredDepth(currency, usdMinor);
      expect(reaches(currency, { confirmations: maturity - 1, coinbase: true, lock: 'chainlock' }, required)).toBe(false);
      expect(reaches(currency, { confirmations: maturity, coinbase: true, lock: null }, required)).toBe(true);
    }
  });

  it.each(CURRENCY_CODES)(
    'of %s asks for nothing more once it is final, whatever locks it and whatever it is worth',
    (currency) => {
      for (const lock of [null, 'instantsend', 'chainlock'] as const) {
        for (const coinbase of [false, true]) {
          const final = confirmationsToReach(currency, { confirmations: 0, coinbase, lock }, finalDepth(currency));
          for (const tier of requiredDepthsOfTiers(currency))
            expect(confirmationsToReach(currency, { confirmations: 0, coinbase, lock }, tier)).toBeLessThanOrEqual(final);
        }
      }
    },
  );

  it('stays reached as confirmations grow', () => {
    fc.assert(
      fc.property(
        codes,
        fc.bigInt({ min: 1n, max: 20_000_000n }),
        fc.boolean(),
        fc.nat({ max: 300 }),
        (currency, usdMinor, coinbase, n) => {
          const required = requiredDepth(currency, usdMinor);
          const depth = { confirmations: n, coinbase, lock: null } as const;
          if (reaches(currency, depth, required))
            expect(reaches(currency, { ...depth, confirmations: n + 1 }, required)).toBe(true);
          expect(reaches(currency, depth, required)).toBe(n >= confirmationsToReach(currency, depth, required));
        },
      ),
    );
  });
});
