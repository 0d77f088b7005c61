import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatRate, parseRate, type Rate } from '../../src/core/rate.ts';
import type { RateSample } from '../../src/core/rate-feed.ts';
import { judgeRate } from '../../src/core/rate-median.ts';

const NOW = 1_800_000_000_000;
const rate = (text: string): Rate => parseRate(text) as Rate;
const NAMES = ['kraken', 'coinbase', 'bitstamp', 'bitfinex'];

function sample(source: string, price: string, more: Partial<RateSample> = {}): RateSample {
  return { source, currency: 'BTC', bid: rate(price), ask: rate(price), atMs: NOW, ...more };
}
function of(...prices: string[]): ReturnType<typeof judgeRate> {
  return judgeRate(
    'BTC',
    prices.map((price, index) => sample(NAMES[index] as string, price)),
    NOW,
  );
}

describe('the median of the live sources', () => {
  test.each([
    [['100', '101', '102'], '101.00'],
    [['100', '101', '102', '102.5'], '101.50'],
    [['100', '101'], '100.50'],
    [['0.08123455', '0.08123456'], '0.08123456'],
    [['80.00', '80.04', '80000.00'], '80.02'],
    [['65000', '65010', '65020', '65000000'], '65010.00'],
    [['65000', '65010', '65020', '65'], '65010.00'],
  ])('%j is %s', (prices, expected) => {
    expect(formatRate(of(...prices).usd as Rate)).toBe(expected);
  });

  test('names the sources that counted with their mid prices and times', () => {
    const judged = judgeRate(
      'BTC',
      [
        { source: 'kraken', currency: 'BTC', bid: rate('99.9'), ask: rate('100.1'), atMs: NOW - 5 },
        { source: 'bitfinex', currency: 'BTC', bid: rate('100'), ask: rate('100'), atMs: NOW },
        { source: 'coinbase', currency: 'LTC', bid: rate('100'), ask: rate('100'), atMs: NOW },
      ],
      NOW,
    );
    expect(judged).toEqual({
      currency: 'BTC',
      usd: rate('100'),
      used: [
        { source: 'kraken', usd: rate('100'), atMs: NOW - 5 },
        { source: 'bitfinex', usd: rate('100'), atMs: NOW },
      ],
      leftOut: [],
    });
  });
});

describe('a source is left out', () => {
  test.each([
    ['older than 60 s', { atMs: NOW - 60_001 }, 'stale'],
    ['more than 60 s ahead of our clock', { atMs: NOW + 60_001 }, 'ahead_of_time'],
    ['with a spread over 1 %', { bid: rate('99.49'), ask: rate('100.50') }, 'spread'],
    ['with a book crossed by more than 1 %', { bid: rate('100.50'), ask: rate('99.49') }, 'spread'],
    ['over 3 % off the median', { bid: rate('103.01'), ask: rate('103.01') }, 'deviation'],
    ['over 3 % below the median', { bid: rate('96.99'), ask: rate('96.99') }, 'deviation'],
  ])('%s', (_, fault, reason) => {
    const judged = judgeRate('BTC', [sample('kraken', '100'), sample('coinbase', '100'), sample('bitfinex', '100', fault)], NOW);
    expect(judged.leftOut).toEqual([{ source: 'bitfinex', reason }]);
    expect(judged.usd).toBe(rate('100'));
  });

  test.each([
    ['exactly 60 s old', { atMs: NOW - 60_000 }],
    ['exactly 60 s ahead of our clock', { atMs: NOW + 60_000 }],
    ['a spread of exactly 1 %', { bid: rate('99.5'), ask: rate('100.5') }],
    ['exactly 3 % off', { bid: rate('103'), ask: rate('103') }],
  ])('not when it is at the limit: %s', (_, limit) => {
    const judged = judgeRate('BTC', [sample('kraken', '100'), sample('coinbase', '100'), sample('bitfinex', '100', limit)], NOW);
    expect(judged.used).toHaveLength(3);
  });
});

describe('no quorum, no price', () => {
  test('one source or none', () => {
    expect(of().usd).toBeNull();
    expect(of('100').usd).toBeNull();
  });
  test('two that are each over 3 % off their middle', () => {
    expect(of('100', '106.3')).toMatchObject({ usd: null, used: [] });
    expect(of('100', '106').usd).toBe(rate('103'));
  });
  test('two of four that are wrong alike', () => {
    expect(of('80', '80', '80000', '80000').usd).toBeNull();
  });
  test('two samples of one source', () => {
    const judged = judgeRate('BTC', [sample('kraken', '100', { atMs: NOW - 1 }), sample('kraken', '101')], NOW);
    expect(judged).toMatchObject({ usd: null, used: [{ usd: rate('101') }] });
  });
});

describe('whatever the sources say', () => {
  const anySample = fc.record({
    source: fc.constantFrom(...NAMES),
    currency: fc.constant('BTC' as const),
    bid: fc.bigInt(1n, 10n ** 23n),
    ask: fc.bigInt(1n, 10n ** 23n),
    atMs: fc.integer({ min: NOW - 120_000, max: NOW + 120_000 }),
  });
  test('a price is positive, lies within the used ones, and has two of different exchanges', () => {
    fc.assert(
      fc.property(fc.array(anySample, { maxLength: 6 }), (samples) => {
        const { usd, used, leftOut } = judgeRate('BTC', samples, NOW);
        expect(new Set([...used, ...leftOut].map((one) => one.source)).size).toBe(used.length + leftOut.length);
        expect(usd === null).toBe(used.length < 2);
        if (usd === null) return;
        expect(usd > 0n && used.some((one) => one.usd <= usd) && used.some((one) => one.usd >= usd)).toBe(true);
      }),
    );
  });

  test('one feed that is wrong by 10 % or by 1000 × never moves the price out of the honest ones', () => {
    const honest = fc.array(fc.bigInt(1_000_000n, 1_010_000n), { minLength: 2, maxLength: 3 });
    const wrong = fc.oneof(fc.bigInt(1n, 900_000n), fc.bigInt(1_111_000n, 1_100_000_000n));
    fc.assert(
      fc.property(honest, wrong, fc.nat(3), (prices, lie, at) => {
        const mids = [...prices.slice(0, at), lie, ...prices.slice(at)];
        const { usd, used } = judgeRate(
          'BTC',
          mids.map((mid, index) => ({ ...sample(NAMES[index] as string, '1'), bid: mid, ask: mid })),
          NOW,
        );
        expect(used.every((one) => one.usd !== lie)).toBe(true);
        expect(usd !== null && usd >= 1_000_000n && usd <= 1_010_000n).toBe(true);
      }),
    );
  });

  test('the order of the sources does not matter', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anySample, { selector: (one) => one.source, maxLength: 4 }), (samples) => {
        expect(judgeRate('BTC', samples.toReversed(), NOW).usd).toBe(judgeRate('BTC', samples, NOW).usd);
      }),
    );
  });
});
