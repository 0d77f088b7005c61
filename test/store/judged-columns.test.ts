// The judged fields of a payment stand in one list, and in the comparison of a verdict with what was before: both have the same.
import { expect, test } from 'vitest';
import type { Payment } from '../../src/core/judge/case.ts';
import { isDecided, isLookedAt, JUDGED_COLUMNS } from '../../src/store/transactions/judged-columns.ts';
import { newPayment } from '../support/one-case.ts';

const LOOKED_AT = ['counted', 'dueHeight', 'dueAtMs'];

test.each(['classified', ...JUDGED_COLUMNS.map(({ field }) => field)] as (keyof Payment)[])(
  'a verdict that changes nothing but %s is noticed and written',
  (field) => {
    const before = newPayment(1);
    const value = before[field];
    const other = typeof value === 'boolean' ? !value : typeof value === 'bigint' ? value + 1n : 'another';
    const after: Payment = { ...before, [field]: other };
    const isLook = LOOKED_AT.includes(field);
    expect([isDecided(after, before), isLookedAt(after, before)]).toEqual([!isLook, isLook]);
    expect([isDecided({ ...before }, before), isLookedAt({ ...before }, before)]).toEqual([false, false]);
  },
);
