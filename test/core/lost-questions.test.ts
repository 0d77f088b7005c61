import { expect, test } from 'vitest';
import { lostQuestions } from '../../src/core/payouts/lost-questions.ts';

const lost = (amount: bigint, asked: readonly { merchantId: bigint; amount: bigint; isPaid?: boolean }[] = [], place = 'a') => ({
  amount,
  place,
  asked: asked.map((one, n) => ({ isPaid: false, payoutId: `asked${n}`, ...one })),
});
const payout = (id: string, amount: bigint, merchantId = 1n, place = 'a') => ({ id, amount, merchantId, place });
const names = (pairs: ReturnType<typeof lostQuestions>): readonly string[] =>
  pairs.map(([, one]) => (one as { id?: string }).id ?? '');

test('a person is asked until it was about as much as was lost, in the order in which they wait', () => {
  const waiting = [payout('first', 60n), payout('second', 39n), payout('third', 1n), payout('fourth', 5n)];
  expect(names(lostQuestions([lost(100n)], waiting))).toEqual(['first', 'second', 'third']);
  expect(names(lostQuestions([lost(101n)], waiting))).toEqual(['first', 'second', 'third', 'fourth']);
});

test('what asks for exactly as much is asked about first, and alone', () => {
  expect(names(lostQuestions([lost(100n)], [payout('small', 10n), payout('same', 100n), payout('large', 200n)]))).toEqual([
    'same',
  ]);
});

test('what was asked before counts, of each merchant by himself, and what was found paid for all', () => {
  const before = lost(100n, [{ merchantId: 1n, amount: 60n }]);
  expect(names(lostQuestions([before], [payout('mine', 40n), payout('more', 1n)]))).toEqual(['mine']);
  expect(names(lostQuestions([before], [payout('other', 100n, 2n), payout('more', 1n, 2n)]))).toEqual(['other']);
  const paid = lost(100n, [{ merchantId: 1n, amount: 60n, isPaid: true }]);
  expect(names(lostQuestions([paid], [payout('other', 40n, 2n), payout('more', 1n, 2n)]))).toEqual(['other']);
});

test('what asks for exactly as much is asked about once, whatever was asked about others, unless as much was found paid', () => {
  const two = [
    { merchantId: 1n, amount: 50n },
    { merchantId: 1n, amount: 60n },
  ];
  const waiting = [payout('same', 100n), payout('more', 99n)];
  expect(names(lostQuestions([lost(100n, two)], waiting))).toEqual(['same']);
  expect(lostQuestions([lost(100n, [...two, { merchantId: 1n, amount: 100n }])], waiting)).toEqual([]);
  // that a larger one was not it says nothing of it either
  const larger = { merchantId: 1n, amount: 110n };
  expect(names(lostQuestions([lost(100n, [larger])], waiting))).toEqual(['same']);
  expect(lostQuestions([lost(100n, [larger, { merchantId: 1n, amount: 100n }])], waiting)).toEqual([]);
  const paid = two.map((one) => ({ ...one, isPaid: true }));
  expect(lostQuestions([lost(110n, paid)], [payout('same', 110n)])).toEqual([]);
  expect(names(lostQuestions([lost(111n, paid)], [payout('same', 111n)]))).toEqual(['same']);
});

test('one of exactly as much is asked about once, because of what nobody was asked about, and of each merchant', () => {
  expect(names(lostQuestions([lost(100n), lost(500n)], [payout('same', 100n)]))).toEqual(['same']);
  expect(names(lostQuestions([lost(100n)], [payout('mine', 100n), payout('other', 100n, 2n)]))).toEqual(['mine', 'other']);
  const [before, open] = [lost(100n, [{ merchantId: 1n, amount: 110n }]), lost(100n)];
  const pairs = lostQuestions([before, open], [payout('same', 100n), payout('goes', 50n)]);
  expect(pairs.map(([of, { id }]) => [of === open, id])).toEqual([[true, 'same']]);
});

test('that smaller ones were not it says nothing of a larger one, until one of as much as is left was asked about', () => {
  const parts = [
    { merchantId: 1n, amount: 40n },
    { merchantId: 1n, amount: 60n },
  ];
  const waiting = [
    payout('equal', 60n),
    payout('larger', 98n),
    payout('again', 98n),
    payout('above', 120n),
    payout('goes', 130n),
  ];
  expect(names(lostQuestions([lost(100n, parts)], waiting))).toEqual(['larger', 'above']);
  expect(lostQuestions([lost(100n, [...parts, { merchantId: 1n, amount: 100n }])], [payout('goes', 120n)])).toEqual([]);
  // of 100 30 are left
  const part = { merchantId: 1n, amount: 70n, isPaid: true };
  const few = [part, { merchantId: 1n, amount: 29n }, { merchantId: 1n, amount: 2n }];
  expect(names(lostQuestions([lost(100n, few)], [payout('goes', 29n), payout('larger', 31n)]))).toEqual(['larger']);
  expect(lostQuestions([lost(100n, [part, { merchantId: 1n, amount: 30n }])], [payout('goes', 31n)])).toEqual([]);
  expect(lostQuestions([lost(100n, [...few, { ...part, amount: 30n }])], [payout('goes', 31n)])).toEqual([]);
});

test('only what goes to the same place is asked about, and each payout because of one loss', () => {
  expect(lostQuestions([lost(100n)], [payout('elsewhere', 100n, 1n, 'b')])).toEqual([]);
  const [one, two] = [lost(100n), lost(50n)];
  const pairs = lostQuestions([one, two], [payout('large', 120n), payout('next', 20n), payout('last', 30n), payout('goes', 1n)]);
  expect(pairs.map(([of]) => (of === one ? 1 : 2))).toEqual([1, 2, 2]);
  expect(names(pairs)).toEqual(['large', 'next', 'last']);
});
