// The cost of a verdict grows with the number of payments and with nothing else: anybody may pay one transaction in thousands of outputs,
// and replace them as often as they pay the fee. Measured in CPU time of this thread, so that other work on the machine does not matter.
import { expect, test } from 'vitest';
import type { Case, CaseTransaction, Payment } from '../../../src/core/judge/case.ts';
import { judge, judgeInTurns } from '../../../src/core/judge/judge.ts';
import { accept } from '../../../src/core/judge/resolve.ts';
import { workedMs } from '../../support/longest-turn.ts';
import { newCase, newPayment, PRICE, replacedCase, TIP, WINDOW_END_MS } from '../../support/one-case.ts';
import { slowness } from '../../support/slowness.ts';

const GOAL_MS = 300;
/** For this long other work may have to wait. */
const TURN_MS = 100;
const MANY = 20_000;
const VERY_MANY = 50_000;
const HOUR = 3_600_000;

/** The least of a few tries. */
function cpuMs(makeCase: () => Case, ask: (it: Case) => void = judge): number {
  const times = Array.from({ length: 4 }, () => {
    const it = makeCase();
    const began = workedMs();
    ask(it);
    return workedMs() - began;
  });
  return Math.min(...times);
}

test('3,000 outputs replaced ten times are judged in 300 ms', { timeout: 60_000 }, () => {
  expect(cpuMs(() => replacedCase(3_000, 10))).toBeLessThan(GOAL_MS * slowness());
});

test('3,000 booked outputs that were lost to a replacement ten times as large are judged in 300 ms', { timeout: 60_000 }, () => {
  const owe = (payment: Payment): Payment => ({ ...payment, owed: payment.amount, wasLost: true, generation: 1 });
  const lost = () => {
    const it = replacedCase(3_000, 10);
    return { ...it, payments: it.payments.map((payment) => (payment.conflictTxid === null ? payment : owe(payment))) };
  };
  expect(cpuMs(lost)).toBeLessThan(GOAL_MS * slowness());
});

test.each(['all by one', 'each by another one'])(
  '3,000 transactions in a row, replaced %s, are judged in 300 ms',
  { timeout: 60_000 },
  (how) => {
    const replaced = (n: number): Payment[] => {
      const spends = [`in:${n}`, `in:${n + 1}`];
      const conflictTxid = how === 'all by one' ? 'new0' : `new${n}`;
      return [
        newPayment(2 * n, { txid: `old${n}`, state: 'conflicted', conflictTxid, spends }),
        newPayment(2 * n + 1, { txid: `new${n}`, seenAtMs: WINDOW_END_MS + HOUR }),
      ];
    };
    const payments = Array.from({ length: 3_000 }, (_, n) => replaced(n)).flat();
    expect(cpuMs(() => newCase(payments.map((payment) => ({ ...payment }))))).toBeLessThan(GOAL_MS * slowness());
  },
);

/** The longest turn of a verdict, the least of a few tries. */
function longestTurnMs(makeCase: () => Case): number {
  const tries = Array.from({ length: 6 }, () => {
    const judging = judgeInTurns(makeCase());
    let longest = 0;
    for (let done: boolean | undefined = false; !done; ) {
      const began = workedMs();
      done = judging.next().done;
      longest = Math.max(longest, workedMs() - began);
    }
    return longest;
  });
  return Math.min(...tries);
}

const mined = (n: number): Partial<Payment> => {
  const height = TIP - 200 + (n % 100);
  return { state: 'mined', height, blockHash: `block${height}`, blockTimeMs: WINDOW_END_MS, lastHeight: height };
};
const late = { seenAtMs: WINDOW_END_MS + HOUR, caughtUpAtMs: WINDOW_END_MS + HOUR };
const booked = { classified: true, present: true, partKey: 'dep', credited: 1_000n, inAvailable: 1_000n };
const paid = { status: 'succeeded', succeededAtMs: 0 } as const;
type Lot = [what: string, payment: (n: number) => Partial<Payment>, transaction: Partial<CaseTransaction>];
const LOTS: Lot[] = [
  ['seen', () => ({}), {}],
  ['deep and booked', mined, {}],
  ['late, in suspense and accepted', (n) => ({ ...mined(n), ...late }), { status: 'timedout' }],
  ['that come after the price is paid', mined, paid],
  ['of two chains', (n) => ({ ...mined(n), currency: n % 2 === 0 ? 'BTC' : 'LTC' }), {}],
  ['that are double-spent', (n) => ({ ...mined(n), ...booked, state: 'conflicted', conflictTxid: 'rival' }), paid],
  ['that a reorganisation moved', (n) => ({ ...mined(n), ...booked, judgedBlockHash: 'old' }), paid],
  [
    'that were lost and are back',
    (n) => ({ ...mined(n), classified: true, owed: 1_000n, wasLost: true }),
    { status: 'review', reviewCause: 'loss' },
  ],
  ['that are nowhere', () => ({ state: 'gone', goneSinceMs: 0, classified: true, present: true }), { status: 'pending' }],
];

test.each(LOTS)('20,000 payments %s are judged in 300 ms', { timeout: 60_000 }, (_what, payment, transaction) => {
  const make = () =>
    newCase(
      Array.from({ length: MANY }, (_, n) => newPayment(n, payment(n))),
      { transaction },
    );
  expect(cpuMs(make)).toBeLessThan(GOAL_MS * slowness());
});

test(`no turn of a verdict over a price that is paid in 50,000 outputs takes ${TURN_MS} ms`, { timeout: 60_000 }, () => {
  const seen = { classified: true, present: true, onTimeMinor: 1_000n, valueRate: 1n };
  const make = () =>
    newCase(
      Array.from({ length: VERY_MANY }, (_, n) => newPayment(n, { ...mined(n), ...seen })),
      { transaction: { status: 'pending', amountDue: 1_000n * BigInt(VERY_MANY) } },
    );
  expect(longestTurnMs(make)).toBeLessThan(TURN_MS * slowness());
  const it = make();
  judge(it);
  expect([it.transaction.status, it.payments.every((payment) => payment.inAvailable === 1_000n)]).toEqual(['settled', true]);
});

test(`no turn of a verdict over a price that 20,000 late payments in 800 blocks pay takes ${TURN_MS} ms`, {
  timeout: 60_000,
}, () => {
  const seen = { classified: true, present: true, valueRate: PRICE };
  const minedAt = (height: number) => ({ ...mined(0), height, blockHash: `block${height}`, lastHeight: height });
  const make = () =>
    newCase(
      Array.from({ length: MANY }, (_, n) => newPayment(n, { ...minedAt(TIP - 900 + Math.floor(n / 25)), ...late, ...seen })),
      { transaction: { status: 'pending', amountDue: 1_000n * BigInt(MANY), usdMinor: 100n * BigInt(MANY) } },
    );
  expect(longestTurnMs(make)).toBeLessThan(TURN_MS * slowness());
  const it = make();
  judge(it);
  expect([it.transaction.status, it.payments.every((payment) => payment.inAvailable === 1_000n)]).toEqual(['settled', true]);
});

test('20,000 payments in suspense are accepted by the merchant in 300 ms', { timeout: 60_000 }, () => {
  const held = { classified: true, present: true, partKey: 'dep', suspended: 1_000n, inSuspense: 1_000n };
  const make = () =>
    newCase(
      Array.from({ length: MANY }, (_, n) => newPayment(n, { ...mined(n), ...held })),
      {
        transaction: { status: 'review', reviewCause: 'late', latePolicy: 'review' },
      },
    );
  const cost = cpuMs(make, (it) => {
    accept(it);
    judge(it);
    expect(it.payments.every((payment) => payment.inAvailable === 1_000n)).toBe(true);
  });
  expect(cost).toBeLessThan(GOAL_MS * slowness());
});
