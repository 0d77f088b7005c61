// A verdict lets other work run in between, and what an earlier one left for later does not hold it up.
import { expect, test } from 'vitest';
import type { Payment } from '../../../src/core/judge/case.ts';
import { judge, judgeInTurns } from '../../../src/core/judge/judge.ts';
import { PAYMENTS_IN_A_TURN } from '../../../src/core/judge/portion.ts';
import { book } from '../../../src/core/judge/rules.ts';
import { newCase, newPayment, TIP } from '../../support/one-case.ts';

const payments = (count: number, known: Partial<Payment>): Payment[] =>
  Array.from({ length: count }, (_, id) => newPayment(id, { classified: true, ...known }));
function countOf(running: Iterator<undefined, unknown>): number {
  let count = 0;
  while (running.next().done !== true) count++;
  return count;
}
const turns = (count: number): number => countOf(judgeInTurns(newCase(payments(count, { state: 'gone', goneSinceMs: 0 }))));

test('other work runs after every so many payments, and with more of them after each rule', () => {
  expect([turns(0), turns(1)]).toEqual([0, turns(PAYMENTS_IN_A_TURN)]);
  expect(turns(1)).toBeGreaterThan(0);
  expect(turns(PAYMENTS_IN_A_TURN + 1)).toBeGreaterThan(turns(1) + 5);
});

test('it runs after every so many payments of a price that are booked', () => {
  const deep = { state: 'mined', height: TIP, blockHash: 'block', present: true, amount: 1_000n, onTimeMinor: 1_000n } as const;
  const booking = (count: number) => book(newCase(payments(count, deep), { transaction: { status: 'confirmed' } }));
  const counts = [PAYMENTS_IN_A_TURN - 1, PAYMENTS_IN_A_TURN, 2 * PAYMENTS_IN_A_TURN].map((count) => countOf(booking(count)));
  expect(counts).toEqual([0, 1, 2]);
});

test('payments that an earlier verdict left for another are not left any more', () => {
  const it = newCase([newPayment(1)]);
  it.more = true;
  judge(it);
  expect(it.more).toBe(false);
});
