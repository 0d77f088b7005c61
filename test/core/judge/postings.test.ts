// The posting templates by themselves: whatever amounts, fees and orders, every entry is balanced in each currency, names each account
// once, overdraws nothing, and repays an open receivable before anything becomes available.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BalancesNeeded, type Case, type Payment } from '../../../src/core/judge/case.ts';
import { judge } from '../../../src/core/judge/judge.ts';
import { acceptSuspense, bookDeposit, bookToSuspense, reverseDeposit } from '../../../src/core/judge/postings.ts';
import { newBooks } from '../../support/books.ts';
import { judgedTransaction, T0, W } from '../../support/judged-transaction.ts';

function payment(id: number, amount: bigint, currency: 'BTC' | 'LTC' = 'BTC'): Payment {
  const judged = judgedTransaction({ currency });
  judged.pay({ amount });
  return { ...judged.payments[0]!, id: BigInt(id), txid: `tx${id}`, vout: id };
}

function caseOf(payments: Payment[], feeBps = 0): Case {
  return {
    transaction: { ...judgedTransaction().transaction },
    payments,
    nowMs: T0,
    chains: new Map([
      ['BTC', { tipHeight: 1, timeMs: T0 }],
      ['LTC', { tipHeight: 1, timeMs: T0 }],
    ]),
    blocks: new Map(),
    feeBps,
    settlementMs: 0,
    balances: new Map(),
    refunds: [],
    steps: [],
  };
}

const lines = (it: Case): [string, bigint][] =>
  it.steps.flatMap((step) =>
    step.kind === 'post' ? step.entry.postings.map((line): [string, bigint] => [line.account, line.amount]) : [],
  );

describe('the templates', () => {
  test('a deposit: payments to the chain’s account; available, fee and suspense get them', () => {
    const it = caseOf([payment(1, 1_000n)], 150);
    bookDeposit(it, it.payments[0]!, 700n);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', 1_000n],
      ['merchant:1:available:BTC', -690n],
      ['income:fee:BTC', -10n],
      ['suspense:txn_1:BTC', -300n],
    ]);
    expect(it.steps[0]).toMatchObject({
      entry: { key: 'dep:btc:tx1:1', kind: 'deposit', parts: [{ key: 'dep:btc:tx1:1', amount: 1_000n, reversesKey: null }] },
    });
  });

  test('a deposit to suspense, accepted, taken back from where it lies then, and back', () => {
    const it = caseOf([payment(1, 1_000n)]);
    const [one] = it.payments;
    bookToSuspense(it, one!);
    acceptSuspense(it, it.payments);
    reverseDeposit(it, one!);
    bookToSuspense(it, one!);
    expect(lines(it)).toEqual([
      ['asset:chain:BTC', 1_000n],
      ['suspense:txn_1:BTC', -1_000n],
      ['suspense:txn_1:BTC', 1_000n],
      ['merchant:1:available:BTC', -1_000n],
      ['asset:chain:BTC', -1_000n],
      ['merchant:1:available:BTC', 1_000n],
      ['asset:chain:BTC', 1_000n],
      ['merchant:1:available:BTC', -1_000n],
    ]);
    expect(it.steps.map((step) => step.kind === 'post' && step.entry.key)).toEqual([
      'dep:btc:tx1:1',
      'rev:txn_1:accept:1:btc',
      'reorg:btc:tx1:1:1',
      'dep:btc:tx1:1#2',
    ]);
  });

  test('what comes back restores no more than it brings, and leaves no balance below zero', () => {
    const back = (lost: Partial<Payment>): Payment => {
      const it = caseOf([{ ...payment(1, 1_000n), ...lost }], 100);
      Object.assign(it, { balances: new Map([['BTC', { available: 0n, receivable: 5_000n }]]) });
      bookToSuspense(it, it.payments[0]!);
      expect(lines(it).reduce((sum, [, amount]) => sum + amount, 0n)).toBe(0n);
      return it.payments[0]!;
    };
    expect(back({ owed: 1_500n })).toMatchObject({ credited: 1_000n, fee: 0n, suspended: 0n, inAvailable: 1_000n });
    expect(back({ owed: 995n, owedFee: 10n })).toMatchObject({ credited: 1_000n, fee: 5n, suspended: 0n });
    expect(back({ owed: 400n, sentBack: 300n, inRefund: 50n })).toMatchObject({ suspended: 600n, inAvailable: 50n });
    expect(back({ owed: 0n, sentBack: 300n })).toMatchObject({ credited: 0n, suspended: 1_000n, inAvailable: 0n });
  });

  test('each currency is accepted in an entry of its own', () => {
    const it = caseOf([payment(1, 5n), payment(2, 6n, 'LTC'), payment(3, 7n)]);
    for (const one of it.payments) bookToSuspense(it, one);
    it.steps.length = 0;
    acceptSuspense(it, it.payments);
    expect(lines(it)).toEqual([
      ['suspense:txn_1:BTC', 12n],
      ['merchant:1:available:BTC', -12n],
      ['suspense:txn_1:LTC', 6n],
      ['merchant:1:available:LTC', -6n],
    ]);
  });

  test('nothing that touches a balance is posted before the balance is locked', () => {
    const it = { ...caseOf([payment(1, 5n)]), balances: null };
    expect(() => bookDeposit(it, it.payments[0]!, 5n)).toThrow(BalancesNeeded);
    bookToSuspense(it, it.payments[0]!);
    expect(() => acceptSuspense(it, it.payments)).toThrow(BalancesNeeded);
  });

  test('payments that are booked, or taken back, one after the other are one entry in each currency, and each is a part of it', () => {
    const it = caseOf([payment(1, 600n), payment(2, 5n, 'LTC'), payment(3, 700n), payment(4, 800n)], 100);
    Object.assign(it, { balances: new Map([['BTC', { available: 0n, receivable: 250n }]]) });
    const [one, other, two, three] = it.payments as [Payment, Payment, Payment, Payment];
    bookDeposit(it, one, 600n);
    bookToSuspense(it, other);
    bookDeposit(it, two, 300n, 600n);
    bookToSuspense(it, three);
    const posted = () => it.steps.flatMap((step) => (step.kind === 'post' ? [step.entry] : []));
    expect(posted().map(({ key, parts }) => [key, parts.map((part) => part.key)])).toEqual([
      ['dep:btc:tx1:1', ['dep:btc:tx1:1', 'dep:btc:tx3:3', 'dep:btc:tx4:4']],
      ['dep:ltc:tx2:2', ['dep:ltc:tx2:2']],
    ]);
    expect(posted()[0]?.postings).toEqual([
      { account: 'asset:chain:BTC', amount: 2_100n },
      { account: 'asset:receivable:merchant:1:BTC', amount: -250n },
      { account: 'merchant:1:available:BTC', amount: -641n },
      { account: 'income:fee:BTC', amount: -9n },
      { account: 'suspense:txn_1:BTC', amount: -1_200n },
    ]);
    it.steps.length = 0;
    reverseDeposit(it, two);
    reverseDeposit(it, three);
    expect(posted().map(({ key, parts }) => [key, parts])).toEqual([
      [
        'reorg:btc:tx3:3:1',
        [
          { key: 'reorg:btc:tx3:3:1', amount: -700n, reversesKey: 'dep:btc:tx3:3' },
          { key: 'reorg:btc:tx4:4:1', amount: -800n, reversesKey: 'dep:btc:tx4:4' },
        ],
      ],
    ]);
    expect(posted()[0]?.postings).toEqual([
      { account: 'asset:chain:BTC', amount: -1_500n },
      { account: 'merchant:1:available:BTC', amount: 297n },
      { account: 'income:fee:BTC', amount: 3n },
      { account: 'suspense:txn_1:BTC', amount: 1_200n },
    ]);
  });

  test('a booked payment is not booked again', () => {
    const it = caseOf([payment(1, 5n)]);
    bookDeposit(it, it.payments[0]!, 5n);
    expect(() => bookDeposit(it, it.payments[0]!, 5n)).toThrow('booked already');
    expect(() => bookToSuspense(it, it.payments[0]!)).toThrow('booked already');
  });
});

test('in whatever order, with whatever fee, the books stay balanced and no unit is in two places', () => {
  const move = fc.record({
    what: fc.constantFrom('book', 'suspend', 'accept', 'reverse', 'spend'),
    which: fc.nat(2),
    part: fc.nat(100),
  });
  const amount = fc.oneof(fc.bigInt(1n, 20n), fc.bigInt(1n, 10n ** 24n));
  fc.assert(
    fc.property(
      fc.array(amount, { minLength: 3, maxLength: 3 }),
      fc.integer({ min: 0, max: 1_000 }),
      fc.array(move, { maxLength: 25 }),
      (amounts, feeBps, moves) => {
        const books = newBooks();
        const it = caseOf(
          amounts.map((one, at) => ({ ...TEMPLATE, id: BigInt(at), txid: `tx${at}`, amount: one })),
          feeBps,
        );
        for (const [at, { what, which, part }] of moves.entries()) {
          const one = it.payments[which]!;
          const booked = one.partKey !== null;
          Object.assign(it, { balances: books.balances(1n) });
          it.transaction.sequence = at;
          if (what === 'book' && !booked && one.owed === 0n) bookDeposit(it, one, (one.amount * BigInt(part)) / 100n);
          if (what === 'suspend' && !booked) bookToSuspense(it, one);
          if (what === 'accept') acceptSuspense(it, it.payments);
          if (what === 'reverse' && booked) reverseDeposit(it, one);
          for (const step of it.steps.splice(0)) if (step.kind === 'post') books.post(step.entry);
          if (what === 'spend') spend(books, at, part);
          expect(books.of('merchant:1:available:BTC') === 0n || books.of('asset:receivable:merchant:1:BTC') === 0n).toBe(true);
          const held = it.payments.filter((other) => other.partKey !== null);
          for (const other of held) expect(other.inAvailable + other.inSuspense).toBe(other.amount);
          expect(books.of('asset:chain:BTC')).toBe(held.reduce((all, other) => all + other.amount, 0n));
          expect(books.of('income:fee:BTC')).toBe(held.reduce((all, other) => all + other.fee, 0n));
        }
      },
    ),
    { numRuns: 500 },
  );
});

const TEMPLATE = payment(0, 1n);
function spend(books: ReturnType<typeof newBooks>, at: number, percent: number): void {
  const amount = (books.of('merchant:1:available:BTC') * BigInt(percent)) / 100n;
  if (amount === 0n) return;
  books.post({
    key: `spend:${at}`,
    kind: 'spend',
    parts: [],
    postings: [
      { account: 'merchant:1:available:BTC', amount },
      { account: 'outside:BTC', amount: -amount },
    ],
  });
}

test('twelve thousand dust payments come to rest', () => {
  const payments = Array.from(
    { length: 12_000 },
    (_, n): Payment => ({
      ...TEMPLATE,
      id: BigInt(n),
      txid: `dust${n}`,
      amount: 600n,
      state: 'mined',
      height: 1,
      blockHash: 'b1',
      classified: false,
      present: false,
      onTimeMinor: 0n,
      valueRate: null,
      seenAtMs: W + 3_600_000,
      caughtUpAtMs: W + 3_600_000,
    }),
  );
  // together they are worth 7,200 USD
  const it: Case = { ...caseOf(payments), chains: new Map([['BTC', { tipHeight: 3, timeMs: T0 }]]) };
  it.transaction.status = 'timedout_checked';
  const began = process.threadCpuUsage();
  judge(it);
  expect(it.transaction.status).toBe('succeeded');
  expect(process.threadCpuUsage(began).user / 1000).toBeLessThan(3_000);
});

test('the fee of a credit in parts is that of the whole, rounded down once: when it is booked and when it is accepted', () => {
  const shares = (it: Case) => it.payments.map((one) => one.fee);
  const booked = caseOf([payment(1, 150n), payment(2, 150n), payment(3, 150n)], 100);
  let before = 0n;
  for (const one of booked.payments) {
    bookDeposit(booked, one, one.amount, before);
    before += one.amount;
  }
  expect(shares(booked)).toEqual([1n, 2n, 1n]);

  const accepted = caseOf([payment(1, 150n), payment(2, 150n), payment(3, 150n)], 100);
  for (const one of accepted.payments) bookToSuspense(accepted, one);
  accepted.steps.length = 0;
  acceptSuspense(accepted, accepted.payments);
  expect(shares(accepted)).toEqual([1n, 2n, 1n]);
  expect(lines(accepted)).toEqual([
    ['suspense:txn_1:BTC', 450n],
    ['merchant:1:available:BTC', -446n],
    ['income:fee:BTC', -4n],
  ]);
});

test('a price that is paid in parts is one credit: its fee is rounded down once', () => {
  const judged = judgedTransaction({ feeBps: 50 });
  judged.pay({ split: [16_667n, 16_667n, 16_666n] });
  judged.mine();
  expect([judged.status, judged.fees(), judged.available()]).toEqual(['succeeded', 250n, 49_750n]);
});
