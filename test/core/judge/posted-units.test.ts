// What a posting leaves behind, to the last unit: in the payment, in the locked balances, and in the lines of its entry.
import { describe, expect, test } from 'vitest';
import type { Case, Payment, Refund, Step } from '../../../src/core/judge/case.ts';
import {
  acceptSuspense,
  bookDeposit,
  bookToSuspense,
  creditRepayingReceivable,
  isTheMerchants,
  postRefund,
  reverseDeposit,
} from '../../../src/core/judge/postings.ts';
import { newCase, newPayment } from '../../support/one-case.ts';

const lines = (it: Case): [string, bigint][] =>
  it.steps.flatMap((step) =>
    step.kind === 'post' ? step.entry.postings.map((line): [string, bigint] => [line.account, line.amount]) : [],
  );
const booked = (id: number, known: Partial<Payment>): Payment => newPayment(id, { partKey: `dep:${id}`, ...known });
const refundOf = (id: string, state: Refund['state'], taken: readonly bigint[]): Refund => ({
  id,
  currency: 'BTC',
  part: 'whole',
  total: 1_000n,
  state,
  isHeld: true,
  shares: new Map(taken.map((payment) => [payment, { available: 1_000n, suspense: 0n }])),
});

describe('the locked balances', () => {
  test('have what is credited; where there was none yet it begins at zero', () => {
    const it = newCase([]);
    creditRepayingReceivable(it, 'BTC', 70n);
    expect(it.balances?.get('BTC')).toEqual({ available: 70n, receivable: 0n });
  });

  test('have only what is left of a credit once it has repaid the receivable', () => {
    const it = newCase([], { balances: new Map([['BTC', { available: 5n, receivable: 30n }]]) });
    creditRepayingReceivable(it, 'BTC', 70n);
    expect(it.balances?.get('BTC')).toEqual({ available: 45n, receivable: 0n });
  });

  test('are not needed to take back what lies in suspense', () => {
    const it = newCase([booked(1, { inSuspense: 1_000n })], { balances: null });
    reverseDeposit(it, it.payments[0]!);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', -1_000n],
      ['suspense:txn_1:BTC', 1_000n],
    ]);
  });
});

describe('a payment', () => {
  test('over Lightning lies in the node’s channels', () => {
    const it = newCase([newPayment(1, { currency: 'BTC-LN' })]);
    bookToSuspense(it, it.payments[0]!);
    expect(lines(it)).toEqual([
      ['asset:ln:BTC', 1_000n],
      ['suspense:txn_1:BTC', -1_000n],
    ]);
  });

  test('costs no fee below the first whole unit of it, booked or accepted', () => {
    const it = newCase([newPayment(1, { amount: 99n }), newPayment(2, { amount: 99n })], { feeBps: 100 });
    const [one, other] = it.payments as [Payment, Payment];
    bookDeposit(it, one, 99n);
    bookToSuspense(it, other);
    acceptSuspense(it, [other]);
    expect([one.fee, other.fee]).toEqual([0n, 0n]);
  });

  test('that is back and booked has lost nothing any more', () => {
    const it = newCase([newPayment(1, { owed: 900n, owedFee: 10n, wasLost: true })]);
    bookToSuspense(it, it.payments[0]!);
    expect(it.payments[0]).toMatchObject({ owed: 0n, owedFee: 0n, wasLost: false });
  });

  test('is accepted to the last unit of what lies in suspense, and counts as credited from then on', () => {
    const it = newCase([booked(1, { inSuspense: 1n }), booked(2, { credited: 400n, inAvailable: 400n, inSuspense: 600n })]);
    acceptSuspense(it, it.payments);
    expect(it.payments.map(({ credited, inAvailable, inSuspense }) => [credited, inAvailable, inSuspense])).toEqual([
      [1n, 1n, 0n],
      [1_000n, 1_000n, 0n],
    ]);
  });

  test('that was credited one unit is taken back from the merchant with that unit', () => {
    const it = newCase([booked(1, { amount: 1n, credited: 1n, inAvailable: 1n })], {
      balances: new Map([['BTC', { available: 1n, receivable: 0n }]]),
    });
    reverseDeposit(it, it.payments[0]!);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', -1n],
      ['merchant:1:available:BTC', 1n],
    ]);
    expect(it.payments[0]).toMatchObject({ owed: 1n, credited: 0n, suspended: 0n, inAvailable: 0n });
  });

  test('of which the merchant had the fee alone owes that as a fee', () => {
    const it = newCase([booked(1, { credited: 1_000n, fee: 10n, inAvailable: 10n, inRefund: 990n })]);
    reverseDeposit(it, it.payments[0]!);
    expect(it.payments[0]).toMatchObject({ owed: 0n, owedFee: 10n });
  });

  test.each([
    ['one unit of it is available', { inAvailable: 1n }, [], true],
    ['nothing of it is', {}, [], false],
    ['a reimbursement has taken one unit of what was available', {}, [1n], true],
    ['a reimbursement has taken only what lay in suspense', {}, [0n], false],
    ['only other payments are in a reimbursement', {}, [null], false],
  ] as const)('is the merchant’s, or is not: %s', (_what, known, taken, expected) => {
    const refunds = taken.map((available) => ({
      ...refundOf('r', 'waiting', []),
      shares: new Map(available === null ? [] : [[1n, { available, suspense: 5n }]]),
    }));
    const it = newCase([booked(1, known)], { refunds });
    expect(isTheMerchants(it, it.payments[0]!)).toBe(expected);
  });
});

describe('a lost payment of a reimbursement', () => {
  const held = () => booked(1, { inRefund: 1_000n });

  test('that can no longer be stopped is what the merchant owes, whatever other reimbursement is open', () => {
    const it = newCase([held()], { refunds: [refundOf('r', 'committed', [1n]), refundOf('other', 'waiting', [2n])] });
    reverseDeposit(it, it.payments[0]!);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', -1_000n],
      ['asset:receivable:merchant:1:BTC', 1_000n],
    ]);
    expect(it.payments[0]?.inRefund).toBe(1_000n);
    expect(it.balances?.get('BTC')).toEqual({ available: 0n, receivable: 1_000n });
  });

  test('of which none is under way any more comes out of what lies there for it', () => {
    const it = newCase([held()]);
    reverseDeposit(it, it.payments[0]!);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', -1_000n],
      ['refund_payable:txn_1:BTC', 1_000n],
    ]);
  });
});

test('an entry has no line of nothing where one payment gives back what the next one takes', () => {
  const it = newCase([
    booked(1, { credited: 1_000n, fee: 10n, inRefund: 1_000n }),
    booked(2, { credited: 10n, inAvailable: 10n, inSuspense: 990n }),
  ]);
  for (const payment of it.payments) reverseDeposit(it, payment);
  expect(lines(it)).toEqual([
    ['asset:chain:BTC', -2_000n],
    ['income:fee:BTC', 10n],
    ['refund_payable:txn_1:BTC', 1_000n],
    ['suspense:txn_1:BTC', 990n],
  ]);
});

test('what a reimbursement takes and what it releases are two entries, named by it', () => {
  const it = newCase([]);
  const line = { account: 'suspense:txn_1:BTC', amount: 5n };
  postRefund(it, { id: 'r', kind: 'reimbursement_hold' }, [line]);
  postRefund(it, { id: 'r', kind: 'reimbursement_released' }, [line]);
  expect(it.steps.map((step: Step) => step.kind === 'post' && step.entry.key)).toEqual(['po:r:hold', 'po:r:release']);
});
