// A verdict lets other work run in between, and what an earlier one left for later does not hold it up.
import { expect, test } from 'vitest';
import { judge, judgeInTurns } from '../../../src/core/judge/judge.ts';
import { PAYMENTS_IN_A_TURN } from '../../../src/core/judge/portion.ts';
import { newCase, newPayment } from '../../support/one-case.ts';

function turns(payments: number): number {
  const gone = { state: 'gone', goneSinceMs: 0, classified: true } as const;
  const judging = judgeInTurns(newCase(Array.from({ length: payments }, (_, id) => newPayment(id, gone))));
  let count = 0;
  while (judging.next().done !== true) count++;
  return count;
}

test('other work runs after every so many payments, and with more of them after each rule', () => {
  expect([turns(0), turns(1)]).toEqual([0, turns(PAYMENTS_IN_A_TURN)]);
  expect(turns(1)).toBeGreaterThan(0);
  expect(turns(PAYMENTS_IN_A_TURN + 1)).toBeGreaterThan(turns(1) + 5);
});

test('payments that an earlier verdict left for another are not left any more', () => {
  const it = newCase([newPayment(1)]);
  it.more = true;
  judge(it);
  expect(it.more).toBe(false);
});
