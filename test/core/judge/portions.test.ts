// A transaction paid in very many outputs is judged in portions. Whatever came, in whatever status it is: after the last portion everything
// is as if it had been judged at once, and no rule that looks at all payments has decided before that.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Case, Payment } from '../../../src/core/judge/case.ts';
import { judge } from '../../../src/core/judge/judge.ts';
import { newBooks } from '../../support/books.ts';
import { asText } from '../../support/chain-truth.ts';
import { live } from '../../support/history.ts';
import { newCase, newPayment, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const MINUTE = 60_000;
const AFTER = WINDOW_END_MS + 20 * MINUTE;

/** What may be true of a payment that the judge sees for the first time. */
const one = fc.record({
  amount: fc.constantFrom(600n, 1_000n, 20_000n, 49_700n, 50_000n, 60_000n),
  isLate: fc.boolean(),
  isOther: fc.boolean(),
  deep: fc.constantFrom(0, 1, 2, 6),
});
type Sent = (typeof one extends fc.Arbitrary<infer T> ? T : never) & {};

function paymentsOf(sent: readonly Sent[]): Payment[] {
  return sent.map(({ amount, isLate, isOther, deep }, id) =>
    newPayment(id, {
      amount,
      currency: isOther ? 'LTC' : 'BTC',
      seenAtMs: isLate ? WINDOW_END_MS + 5 * MINUTE + id : WINDOW_END_MS - 1_000 + id,
      caughtUpAtMs: isLate ? WINDOW_END_MS + 5 * MINUTE : WINDOW_END_MS - 1_000,
      ...(deep === 0 ? {} : { state: 'mined', height: TIP - deep + 1, blockHash: `b${deep}`, blockTimeMs: AFTER }),
    }),
  );
}

function caseOf(payments: readonly Payment[], before: Case | null, portionLeft?: number): Case {
  const view = { tipHeight: TIP, timeMs: AFTER };
  return newCase(
    payments.map((payment) => ({ ...payment })),
    {
      nowMs: AFTER,
      chains: new Map([
        ['BTC', view],
        ['LTC', view],
      ]),
      settlementMs: 86_400_000,
      feeBps: 75,
      ...(portionLeft === undefined ? {} : { portionLeft }),
      ...(before === null ? {} : { transaction: { ...before.transaction } }),
    },
  );
}

type End = { readonly it: Case; readonly verdicts: readonly Case[]; readonly books: ReturnType<typeof newBooks> };

/** Judges until no payment is left for another verdict, each time with room for this many. */
function judged(payments: readonly Payment[], portionLeft?: number): End {
  const books = newBooks();
  const verdicts: Case[] = [];
  let before: Case | null = null;
  for (let n = 0; n === 0 || verdicts.at(-1)?.more; n++) {
    if (n > 200) throw new Error('it comes to no end');
    const it: Case = { ...caseOf(before?.payments ?? payments, before, portionLeft), balances: books.balances(1n) };
    judge(it);
    for (const step of it.steps) if (step.kind === 'post') books.post(step.entry);
    verdicts.push(it);
    before = it;
  }
  return { it: before as Case, verdicts, books };
}

const statuses = (end: End) =>
  end.verdicts.flatMap((it) => it.steps.flatMap((step) => (step.kind === 'status' ? [step.to] : [])));
const announced = (end: End) =>
  end.verdicts
    .flatMap((it) => it.steps.flatMap((step) => (step.kind === 'announce' ? [`${step.type} ${step.data.txid}`] : [])))
    .sort();
const ACCOUNTS = [
  'asset:chain:BTC',
  'asset:chain:LTC',
  'merchant:1:available:BTC',
  'merchant:1:available:LTC',
  'asset:receivable:merchant:1:BTC',
  'asset:receivable:merchant:1:LTC',
  'suspense:txn_1:BTC',
  'suspense:txn_1:LTC',
  'income:fee:BTC',
  'income:fee:LTC',
];

test('in portions it ends as at once: the same path, places, announcements and books', () => {
  fc.assert(
    fc.property(fc.array(one, { minLength: 1, maxLength: 14 }), fc.integer({ min: 1, max: 5 }), (sent, portionLeft) => {
      const payments = paymentsOf(sent);
      const whole = judged(payments);
      const parts = judged(payments, portionLeft);
      expect(whole.verdicts).toHaveLength(1);
      expect(statuses(parts)).toEqual(statuses(whole));
      expect(announced(parts)).toEqual(announced(whole));
      expect(parts.it.transaction).toEqual(whole.it.transaction);
      expect(parts.it.payments).toEqual(whole.it.payments);
      for (const code of ACCOUNTS) expect(parts.books.of(code), code).toBe(whole.books.of(code));
    }),
    { numRuns: 1_500 },
  );
});

test('of payments that are found together those on time come first, at once and in portions', () => {
  const late: Sent = { amount: 60_000n, isLate: true, isOther: false, deep: 6 };
  const found = paymentsOf([late, { ...late, amount: 50_000n, isLate: false }]);
  for (const end of [judged(found), judged(found, 1)]) expect(statuses(end)).toEqual(['pending', 'confirmed', 'succeeded']);
});

test('no verdict notes, books or takes back more than it has room for, but what the price needs', () => {
  const payments = paymentsOf(Array.from({ length: 200 }, () => ({ amount: 600n, isLate: false, isOther: false, deep: 1 })));
  const { verdicts, it } = judged(payments, 20);
  const placed = (before: readonly Payment[], after: readonly Payment[]) =>
    after.filter((payment, n) => (payment.partKey === null) !== (before[n]?.partKey === null)).length;
  const counted = verdicts.map((one, n) => placed(verdicts[n - 1]?.payments ?? payments, one.payments));
  // 84 of 600 are 50,000 and a little
  expect(Math.max(...counted)).toBe(84);
  expect(counted.filter((count) => count > 20)).toHaveLength(1);
  expect([it.transaction.status, it.payments.every((payment) => payment.partKey !== null)]).toEqual(['succeeded', true]);
});

test('what is lost is taken back in portions, each from where it lies, and comes back whole', () => {
  const paid = judged(paymentsOf(Array.from({ length: 60 }, () => ({ amount: 1_000n, isLate: false, isOther: false, deep: 2 }))));
  const nowhere = { state: 'conflicted', height: null, blockHash: null, blockTimeMs: null } as const;
  const gone = paid.it.payments.map((payment): Payment => ({ ...payment, ...nowhere }));
  const again = (from: Case, payments: readonly Payment[]): Case => {
    let before = { ...from, payments } as Case;
    for (let n = 0; n === 0 || before.more; n++) {
      const it = { ...caseOf(before.payments, before, 7), balances: paid.books.balances(1n) };
      judge(it);
      for (const step of it.steps) if (step.kind === 'post') paid.books.post(step.entry);
      before = it;
    }
    return before;
  };
  const lost = again(paid.it, gone);
  expect([lost.transaction.status, lost.payments.some((payment) => payment.partKey !== null)]).toEqual(['review', false]);
  for (const code of ACCOUNTS) expect(paid.books.of(code), code).toBe(0n);
  const back = again(
    lost,
    lost.payments.map((payment, n) => {
      const { state, height, blockHash, blockTimeMs } = paid.it.payments[n] as Payment;
      return { ...payment, state, height, blockHash, blockTimeMs };
    }),
  );
  expect(back.transaction.status).toBe('succeeded');
  expect(paid.books.of('asset:chain:BTC')).toBe(60_000n);
  expect(paid.books.of('merchant:1:available:BTC')).toBe(50_000n - 375n);
});

const HISTORIES = 250;

/** A life after every move: where each payment is, what was announced, and the books. Transactions and blocks are numbered anew. */
function movesOf(seed: number, portions: { readonly portionLeft?: number } = {}): readonly string[] {
  const numbers = new Map<string, number>();
  const numbered = (text: string): string =>
    text.replaceAll(/(?<=[":-]t|[A-Z]{3}-\d+-)\d+/g, (number) => {
      numbers.set(number, numbers.get(number) ?? numbers.size);
      return String(numbers.get(number));
    });
  const moves: string[] = [];
  live(
    seed,
    ({ books, payments, transaction, path, announced }) => {
      const balances = ACCOUNTS.map((code) => books.of(code));
      moves.push(numbered(JSON.stringify({ transaction, payments, path: path(), announced: announced(), balances }, asText)));
    },
    portions,
  );
  return moves;
}

test(`${HISTORIES} histories in portions go as they go at once, and keep every invariant after each portion`, {
  timeout: 120_000,
}, () => {
  for (let seed = 20_001; seed <= 20_000 + HISTORIES; seed++) {
    const whole = movesOf(seed);
    const parts = movesOf(seed, { portionLeft: 1 + (seed % 3) });
    const at = whole.findIndex((move, n) => move !== parts[n]);
    if (at >= 0) expect(JSON.parse(parts[at] ?? ''), `history ${seed}, move ${at}`).toEqual(JSON.parse(whole[at] ?? ''));
  }
});
