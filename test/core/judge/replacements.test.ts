// What a fee replacement takes over equals a plain reading of the rule, however the chains of replacements overlap.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Case, Payment } from '../../../src/core/judge/case.ts';
import { noticePayments } from '../../../src/core/judge/notice.ts';
import { isOnTime, tolerance } from '../../../src/core/judge/payments.ts';
import { newCase, newPayment, WINDOW_END_MS } from '../../support/one-case.ts';

const total = (amounts: readonly bigint[]): bigint => amounts.reduce((a, b) => a + b, 0n);
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const txidsOf = (payments: readonly Payment[]): string[] => [...new Set(payments.map((payment) => payment.txid))];

/** Payments are in one chain when common outpoints lead from one to the other: computed the plain way, every pair again and again. */
function rows(payments: readonly Payment[]): Payment[][] {
  const list = payments.map((payment) => [payment]);
  for (;;) {
    const meet = (a: Payment, b: Payment) => a.txid === b.txid || a.spends.some((outpoint) => b.spends.includes(outpoint));
    const pair = list.flatMap((one, i) =>
      list.slice(i + 1).flatMap((other) => (one.some((a) => other.some((b) => meet(a, b))) ? [[one, other]] : [])),
    )[0];
    if (pair === undefined) return list;
    pair[0]!.push(...pair[1]!);
    list.splice(list.indexOf(pair[1]!), 1);
  }
}

/** Rule "a fee replacement is on time if what it replaces was, up to its amount", payment by payment. */
function plainlyOnTime(it: Case, payment: Payment): bigint {
  if (it.transaction.merchantDecision === 'cancelled') return 0n;
  if (isOnTime(it.transaction, payment)) return payment.amount;
  const replaced = it.payments.filter((other) => other.conflictTxid === payment.txid && other.currency === payment.currency);
  const wasOnTime = (other: Payment) =>
    other.classified ? other.onTimeMinor : isOnTime(it.transaction, other) ? other.amount : 0n;
  const inherited = total(
    rows(replaced).map((row) =>
      txidsOf(row)
        .map((txid) => total(row.filter((other) => other.txid === txid).map(wasOnTime)))
        .reduce(max),
    ),
  );
  const siblings = it.payments.filter(
    (other) => other.txid === payment.txid && other.currency === payment.currency && other.classified && other !== payment,
  );
  return min(payment.amount, max(0n, inherited - total(siblings.map((other) => other.onTimeMinor))));
}

/** What the loss of the replaced payments took passes to their replacement, payment by payment. */
function plainlyTakeOver(it: Case, successor: Payment): void {
  const lost = it.payments.filter(
    (other) => other.conflictTxid === successor.txid && other.currency === successor.currency && other.partKey === null,
  );
  if (successor.partKey !== null || total(lost.map((other) => other.owed)) === 0n) return;
  for (const other of lost) {
    const taken = min(other.owed + other.owedFee, successor.amount - successor.owed - successor.owedFee);
    const owed = min(other.owed, taken - min(other.owedFee, (taken * BigInt(it.feeBps)) / 10_000n));
    successor.owed += owed;
    successor.owedFee += taken - owed;
    other.owed -= owed;
    other.owedFee -= taken - owed;
    if (other.owed > 0n) continue;
    successor.wasLost ||= other.wasLost;
    other.wasLost = false;
  }
  const right = it.payments.filter((other) => other !== successor && other.currency === it.transaction.currency);
  const elsewhere = total(right.map((other) => other.inAvailable + other.owed + other.owedFee));
  const most = it.transaction.amountDue + tolerance(it.transaction);
  if (successor.owed === 0n || successor.currency !== it.transaction.currency || elsewhere + successor.amount > most) return;
  successor.owedFee = (successor.amount * BigInt(it.feeBps)) / 10_000n;
  successor.owed = successor.amount - successor.owedFee;
}

/** The new payments of a case, in the order in which they are handled. */
function plainly(it: Case): void {
  const news = it.payments.filter((payment) => (payment.state === 'mempool' || payment.state === 'mined') && !payment.present);
  for (const payment of news) {
    if (payment.classified) continue;
    payment.onTimeMinor = plainlyOnTime(it, payment);
    payment.classified = true;
  }
  const late = (payment: Payment) => payment.currency === it.transaction.currency && payment.onTimeMinor === 0n;
  for (const payment of [...news.filter((one) => !late(one)), ...news.filter(late)]) plainlyTakeOver(it, payment);
}

const OF_LOSS = ['owed', 'owedFee', 'wasLost'] as const;
const notes = (payments: readonly Payment[]) =>
  payments.map((payment) => [payment.id, payment.classified, payment.onTimeMinor, ...OF_LOSS.map((name) => payment[name])]);

const amount = fc.bigInt({ min: 1n, max: 60n });
/** One output: how much of it counts as what, where its transaction's place asks for it. */
const output = fc.record({
  amount,
  onTime: fc.bigInt({ min: 0n, max: 60n }),
  owed: fc.oneof(fc.constant(0n), amount),
  owedFee: fc.oneof(fc.constant(0n), amount),
  wasLost: fc.boolean(),
  inAvailable: fc.oneof(fc.constant(0n), fc.constant(0n), amount),
});
const transaction = fc.record({
  outputs: fc.array(output, { minLength: 1, maxLength: 4 }),
  /** By which of the first three transactions it is replaced; those themselves are there. */
  replacedBy: fc.integer({ min: 0, max: 2 }),
  spends: fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 3 }),
  currency: fc.constantFrom('BTC', 'BTC', 'BTC', 'LTC'),
  onTime: fc.boolean(),
  classified: fc.boolean(),
  present: fc.boolean(),
});
const small = fc.record({
  transactions: fc.array(transaction, { minLength: 4, maxLength: 9 }),
  cancelled: fc.constantFrom(false, false, false, true),
  feeBps: fc.constantFrom(0, 0, 100, 5_000),
  order: fc.infiniteStream(fc.nat()),
});

type Facts = typeof small extends fc.Arbitrary<infer T> ? T : never;

function caseOf({ transactions, cancelled, feeBps, order }: Facts): Case {
  let id = 0;
  const payments = transactions.flatMap((one, n) => {
    const there = n < 3;
    return one.outputs.map((each) => {
      const classified = one.classified;
      const lost = !there && classified;
      const owed = lost ? min(each.owed, each.amount) : 0n;
      return newPayment(id++, {
        txid: `tx${n}`,
        currency: there ? (transactions[n]!.currency as 'BTC') : (transactions[one.replacedBy]!.currency as 'BTC'),
        amount: each.amount,
        state: there ? 'mempool' : 'conflicted',
        conflictTxid: there ? null : `tx${one.replacedBy}`,
        spends: there ? [] : one.spends.map((outpoint) => `in:${outpoint}`),
        seenAtMs: one.onTime ? WINDOW_END_MS : WINDOW_END_MS + 3_600_000,
        caughtUpAtMs: WINDOW_END_MS + 3_599_000,
        classified,
        present: there && classified && one.present,
        onTimeMinor: classified ? min(each.onTime, each.amount) : 0n,
        owed,
        owedFee: lost ? min(each.owedFee, each.amount - owed) : 0n,
        wasLost: lost && each.wasLost,
        inAvailable: there && classified ? min(each.inAvailable, each.amount) : 0n,
      });
    });
  });
  // in the order in which they were seen, whichever transaction they belong to
  const mixed = payments.map((payment) => ({ payment, at: order.next().value as number })).sort((a, b) => a.at - b.at);
  return newCase(
    mixed.map(({ payment }) => payment),
    {
      feeBps,
      transaction: { amountDue: 100n, status: 'review', reviewCause: 'late', merchantDecision: cancelled ? 'cancelled' : 'none' },
    },
  );
}

test('what replacements take over is what a plain reading of the rule gives, whatever the rows, the losses and the order', () => {
  let inherited = 0;
  let restored = 0;
  fc.assert(
    fc.property(small, (facts) => {
      const it = caseOf(facts);
      const copy: Case = { ...it, transaction: { ...it.transaction }, payments: it.payments.map((payment) => ({ ...payment })) };
      const before = new Map(it.payments.map((payment) => [payment.id, { ...payment }]));
      noticePayments(it);
      plainly(copy);
      expect(notes(it.payments)).toEqual(notes(copy.payments));
      for (const payment of it.payments) {
        const was = before.get(payment.id) as Payment;
        if (!was.classified && payment.onTimeMinor > 0n && payment.onTimeMinor < payment.amount) inherited++;
        if (was.owed === 0n && payment.owed > 0n) restored++;
      }
    }),
    { numRuns: 2_000 },
  );
  // the cases are not empty ones
  expect(inherited).toBeGreaterThan(50);
  expect(restored).toBeGreaterThan(50);
});
