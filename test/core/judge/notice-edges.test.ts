// Taking note of one payment, and of as many as a verdict has room for.
import { describe, expect, test } from 'vitest';
import type { CaseTransaction, Payment } from '../../../src/core/judge/case.ts';
import { noticePayments } from '../../../src/core/judge/notice.ts';
import { ofAll, portion } from '../../../src/core/judge/portion.ts';
import { newCase, newPayment, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const known = { state: 'mined', height: TIP, classified: true } as const;
const noted = (payment: Payment, transaction: Partial<CaseTransaction>) => {
  const it = newCase([payment], { transaction });
  noticePayments(it);
  return it.transaction.status;
};

describe('a payment whose place the books already have', () => {
  test.each([
    ['is booked', { partKey: 'dep:1' }],
    ['was lost', { wasLost: true }],
    ['restores a unit that its loss took', { owed: 1n }],
  ] as const)('and that is back changes no decision: it %s', (_what, place) => {
    expect(noted(newPayment(1, { ...known, ...place }), { status: 'declined' })).toBe('declined');
    expect(noted(newPayment(1, known), { status: 'declined' })).toBe('review');
  });
});

test('a payment of one unit on time makes the transaction pending', () => {
  expect(noted(newPayment(1, { amount: 1n }), { status: 'started' })).toBe('pending');
  expect(
    noted(newPayment(1, { seenAtMs: WINDOW_END_MS + 60_001, caughtUpAtMs: WINDOW_END_MS + 60_000, amount: 1n }), {
      status: 'started',
    }),
  ).toBe('review');
});

describe('in portions', () => {
  const three = () => [newPayment(1), newPayment(2), newPayment(3)];

  test('a verdict takes note of the first it has room for; the others are as if they had not come yet', () => {
    const it = newCase(three(), { portionLeft: 2 });
    expect(noticePayments(it)).toBe(true);
    expect(it.payments.map(({ present, classified, onTimeMinor }) => [present, classified, onTimeMinor])).toEqual([
      [true, true, 1_000n],
      [true, true, 1_000n],
      [false, false, 0n],
    ]);
    expect([it.portionLeft, it.more]).toEqual([0, true]);
  });

  test('what was classified before stays so while it waits for its turn', () => {
    const it = newCase([newPayment(1), newPayment(2, { classified: true, onTimeMinor: 1_000n })], { portionLeft: 1 });
    noticePayments(it);
    expect(it.payments[1]).toMatchObject({ present: false, classified: true, onTimeMinor: 1_000n });
  });

  test('without room nothing is noted, and that is no change', () => {
    const it = newCase(three(), { portionLeft: 0 });
    expect(noticePayments(it)).toBe(false);
    expect([it.more, it.payments.some(({ present }) => present)]).toEqual([true, false]);
  });

  test('late payments come after those on time and those in another currency', () => {
    const late = { seenAtMs: WINDOW_END_MS + 60_001, caughtUpAtMs: WINDOW_END_MS + 60_000, amount: 5n };
    const it = newCase([newPayment(1, late), newPayment(2), newPayment(3, { ...late, currency: 'LTC' })], { portionLeft: 2 });
    noticePayments(it);
    expect(it.payments.map(({ present }) => present)).toEqual([false, true, true]);
  });

  test('what all fits in leaves nothing', () => {
    const it = newCase([], { portionLeft: 3 });
    expect([portion(it, [1, 2, 3]), it.portionLeft, it.more === true]).toEqual([[1, 2, 3], 0, false]);
    expect([portion(it, [4]), it.more]).toEqual([[], true]);
  });

  test('a rule that looks at all payments waits while some are left', () => {
    const rule = ofAll(() => 'looked');
    expect([rule(newCase([])), rule(newCase([], { more: false })), rule(newCase([], { more: true }))]).toEqual([
      'looked',
      'looked',
      false,
    ]);
  });
});

test('a second output of a replacement inherits only what the first, judged before, has left of the time of what they replace', () => {
  const late = { seenAtMs: WINDOW_END_MS + 60_001, caughtUpAtMs: WINDOW_END_MS + 60_000, txid: 'by' };
  const it = newCase(
    [
      newPayment(1, { txid: 'replaced', state: 'conflicted', conflictTxid: 'by', classified: true, onTimeMinor: 1_000n }),
      newPayment(2, { ...late, amount: 700n, classified: true, present: true, onTimeMinor: 700n }),
      newPayment(3, { ...late, amount: 600n }),
    ],
    { transaction: { status: 'pending' } },
  );
  noticePayments(it);
  expect(it.payments[2]).toMatchObject({ classified: true, onTimeMinor: 300n });
});
