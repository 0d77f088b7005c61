// Whose the units of a reimbursement are again that never arrived, where their payment was lost and replaced meanwhile: what its successors have
// restored to the merchant of it lies in suspense, as far as it had not come from the merchant.
import { expect, test } from 'vitest';
import type { Payment, Refund, RefundShare } from '../../../src/core/judge/case.ts';
import { giveBack, unitsOf } from '../../../src/core/judge/refund-return.ts';
import { newCase, newPayment } from '../../support/one-case.ts';

const SHARE: RefundShare = { available: 30n, suspense: 70n };
/** 100 units that were sent back, 30 of them the merchant's. */
const gone = (by: string): Payment =>
  newPayment(1, {
    txid: 'lost',
    amount: 100n,
    state: 'conflicted',
    conflictTxid: by,
    classified: true,
    sentBack: 100n,
    generation: 1,
  });
const booked = (id: number, txid: string, amount: bigint, fee = 0n): Payment => {
  const here = { txid, amount, state: 'mined', height: 1, classified: true, present: true } as const;
  return newPayment(id, { ...here, partKey: `dep:${id}`, credited: amount, inAvailable: amount, fee });
};
const lost = (id: number, txid: string, by: string, owed: bigint): Payment =>
  newPayment(id, { txid, amount: 1_000n, state: 'conflicted', conflictTxid: by, classified: true, owed });

const refundOf = (id: string, shares: ReadonlyMap<bigint, RefundShare>, state: Refund['state']): Refund => {
  const total = [...shares.values()].map(unitsOf).reduce((sum, units) => sum + units, 0n);
  return { id, currency: 'BTC', part: 'whole', total, state, isHeld: true, shares };
};
function given(payments: readonly Payment[]) {
  const refund = refundOf('r', new Map([[1n, SHARE]]), 'failed');
  const balances = new Map([['BTC', { available: 0n, receivable: 0n }]] as const);
  const it = newCase(payments, { refunds: [refund], balances: new Map(balances), transaction: { status: 'succeeded' } });
  giveBack(it, refund, (_, share) => unitsOf(share));
  const [step] = it.steps;
  const postings = step?.kind === 'post' ? step.entry.postings : [];
  const of = (name: string) => postings.find(({ account }) => account.includes(name))?.amount;
  return { payable: of('refund_payable'), available: of('available'), suspense: of('suspense') };
}
const places = ({ inAvailable, inSuspense, credited, suspended }: Payment) => [inAvailable, inSuspense, credited, suspended];

test('what did not come from the merchant goes to suspense, out of one successor after the other, and leaves each its fee', () => {
  const successors = [booked(2, 'next', 60n, 6n), booked(3, 'next', 60n)];
  expect(given([gone('next'), ...successors])).toEqual({ payable: 100n, available: -30n, suspense: -70n });
  expect(successors.map(places)).toEqual([
    [6n, 54n, 6n, 54n],
    [44n, 16n, 44n, 16n],
  ]);
});

test('what a successor that is lost too still owes is settled first, and is in no suspense', () => {
  const successors = [lost(2, 'next', 'other', 50n), booked(3, 'next', 45n), booked(4, 'next', 60n)];
  expect(given([gone('next'), ...successors])).toEqual({ payable: 100n, available: -50n, suspense: -50n });
  expect(successors[0]?.owed).toBe(0n);
  expect(successors.slice(1).map(places)).toEqual([
    [0n, 45n, 0n, 45n],
    [55n, 5n, 55n, 5n],
  ]);
});

test('to the last unit, by what has replaced the successor', () => {
  const successors = [lost(2, 'next', 'last', 99n), booked(3, 'last', 10n)];
  expect(given([gone('next'), ...successors])).toEqual({ payable: 100n, available: -99n, suspense: -1n });
  expect(successors[1] && places(successors[1])).toEqual([9n, 1n, 9n, 1n]);
});

test('where two have replaced each other in turn, it ends', () => {
  const successors = [lost(2, 'next', 'other', 0n), lost(3, 'other', 'next', 0n)];
  expect(given([gone('next'), ...successors])).toEqual({ payable: 100n, available: -100n, suspense: undefined });
});

test('what lies there for another reimbursement, of other payments, is not its own', () => {
  const mine = { ...booked(1, 'mine', 100n), inAvailable: 0n, inRefund: 100n };
  const other = { ...booked(2, 'other', 80n), inAvailable: 0n, inRefund: 80n };
  const refund = refundOf('r', new Map([[1n, SHARE]]), 'failed');
  const open = refundOf('open', new Map([[2n, { available: 80n, suspense: 0n }]]), 'committed');
  const it = newCase([mine, other], { refunds: [refund, open], transaction: { status: 'succeeded' } });
  giveBack(it, refund, (_, share) => unitsOf(share));
  expect(
    [mine, other].map(({ inRefund, sentBack, inAvailable, inSuspense }) => [inRefund, sentBack, inAvailable, inSuspense]),
  ).toEqual([
    [0n, 0n, 30n, 70n],
    [80n, 0n, 0n, 0n],
  ]);
});
