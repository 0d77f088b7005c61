// At which height of its chain the judge looks at a payment again: the next one that can change anything, and no other.
import { describe, expect, test } from 'vitest';
import type { CaseTransaction, Payment } from '../../../src/core/judge/case.ts';
import { nextHeight } from '../../../src/core/judge/required-depth.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const view = { tipHeight: TIP, timeMs: WINDOW_END_MS };
/** Of one that has its first confirmation with the tip, and is on time. One cent is ten satoshi. */
function at(known: Partial<Payment>, transaction: Partial<CaseTransaction> = {}): number | null {
  const amount = known.amount ?? 50_000n;
  const mined = { state: 'mined', height: TIP, classified: true, present: true, valueRate: PRICE, onTimeMinor: amount } as const;
  const chains = new Map(['BTC', 'LTC', 'ETH'].map((code) => [code as 'BTC', view]));
  const it = newCase([newPayment(1, { ...mined, ...known, amount })], { chains, transaction });
  return nextHeight(it, it.payments[0]!);
}
const FINAL = TIP + 5;

describe('what is in a block', () => {
  test('is looked at when it is final; then no more', () => {
    expect(at({})).toBe(FINAL);
    expect(at({ height: TIP - 4 })).toBe(TIP + 1);
    expect(at({ height: TIP - 5 })).toBe(null);
  });

  test('is looked at with the depth of its own worth, and not again at that depth', () => {
    expect(at({ amount: 500_000n })).toBe(TIP + 1);
    expect(at({ amount: 500_000n, height: TIP - 1 })).toBe(TIP + 4);
  });

  test('is looked at with the depth of the price, in the currency of the price', () => {
    expect(at({}, { usdMinor: 500_00n })).toBe(TIP + 1);
    expect(at({ currency: 'LTC' }, { usdMinor: 500_00n })).toBe(TIP + 1);
    expect(at({ currency: 'LTC', height: TIP - 1 }, { usdMinor: 500_00n })).toBe(TIP - 1 + 11);
  });

  test('is looked at with the depth of what its loss took', () => {
    const large = { currency: 'LTC', amount: 2_000_000n } as const;
    expect(at({ ...large, owed: 500_000n })).toBe(TIP + 2);
    expect(at({ ...large, owed: 1n })).toBe(TIP + 1);
    expect(at(large)).toBe(TIP + 5);
    expect(at({ amount: 2_000_000n, owed: 500_000n })).toBe(TIP + 1);
  });

  test('is final with a lock alone where the chain says so: no height brings that', () => {
    expect(at({ currency: 'ETH', amount: 1n, height: TIP - 100 })).toBe(null);
  });
});

describe('the depth of every tier counts', () => {
  test.each([
    ['for what is late while the price is open', {}, { onTimeMinor: 0n }, true],
    ['for a unit of it that is late', {}, { onTimeMinor: 49_999n }, true],
    ['not for what is on time', {}, {}, false],
    ['not for what was not judged yet', {}, { onTimeMinor: 0n, classified: false }, false],
    ['not for what is late of a price that was paid', { status: 'succeeded' }, { onTimeMinor: 0n }, false],
    ['for what lies in suspense in review', { status: 'review' }, { inSuspense: 1n }, true],
    ['not for what lies in none', { status: 'review' }, {}, false],
    ['not for what lies in suspense once it is decided', { status: 'succeeded' }, { inSuspense: 1n }, false],
  ] as const)('%s', (_what, transaction, known, each) => {
    expect(at(known, { status: 'pending', ...transaction })).toBe(each ? TIP + 1 : FINAL);
  });
});

describe('what is in no block', () => {
  test('waits for no height', () => {
    expect(at({ state: 'mempool', height: null })).toBe(null);
  });

  test('and is gone waits until our node is where it was last seen', () => {
    const gone = { state: 'gone', height: null } as const;
    expect(at({ ...gone, lastHeight: TIP + 1 })).toBe(TIP + 1);
    expect(at({ ...gone, lastHeight: TIP })).toBe(null);
    expect(at({ ...gone, lastHeight: TIP - 1 })).toBe(null);
    expect(at({ ...gone, lastHeight: null })).toBe(null);
  });
});
