// A small setup around the pure judge: chains with what really happens on them, a watcher, a clock, rates, books, the merchant's decisions.
// After every move the judge is asked as the service asks it, its answer is applied as the store would, and the invariants of the model
// (Credit) are checked. Money is in cents and satoshi; the quote is 100,000 USD for a whole unit, so one cent is ten satoshi.
import { expect } from 'vitest';
import type { CurrencyCode, PaymentMethod } from '../../src/core/currency.ts';
import type { Case, CaseTransaction, Payment, Refund, Step } from '../../src/core/judge/case.ts';
import type { Verdict } from '../../src/core/judge/judge.ts';
import { accept, acceptExcess, cancel, decline } from '../../src/core/judge/resolve.ts';
import { GRACE_MS } from '../../src/core/judge/times.ts';
import type { Rate } from '../../src/core/rate.ts';
import { type Books, newBooks } from './books.ts';
import { asText, broadcast, type Chain, leave, mine, newChain, reorganise, type Tx, watch } from './chain-truth.ts';
import { checkMove, type Move } from './invariants.ts';
import { type Asked, askJudge } from './judge-asking.ts';
import { refundMoves } from './judged-refunds.ts';
import { newTransaction } from './one-case.ts';
import { newPrices } from './prices.ts';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const T0 = Date.UTC(2026, 0, 1);
export const W = T0 + 15 * MINUTE;
export const QUOTE: Rate = 100_000n * 10n ** 8n;

export type JudgedTransactionOptions = {
  readonly usd?: bigint;
  readonly toleranceBps?: number;
  readonly latePolicy?: 'accept' | 'review';
  readonly feeBps?: number;
  readonly settlementMs?: number;
  readonly currency?: CurrencyCode;
  /** The judge decides in portions: of so many payments each verdict may note something. */
  readonly portionLeft?: number;
};
export type SentPayment = {
  amount?: bigint;
  currency?: CurrencyCode;
  split?: readonly bigint[];
  coinbase?: boolean;
  inputs?: readonly string[];
  lock?: Payment['lock'];
  mined?: boolean;
};

function isDue(payment: Payment, view: Chain['view'] | undefined): boolean {
  if (view === undefined) return false;
  return (
    (payment.dueHeight !== null && payment.dueHeight <= view.tipHeight) ||
    (payment.dueAtMs !== null && payment.dueAtMs <= view.timeMs)
  );
}

export type JudgedTransaction = ReturnType<typeof judgedTransaction>;

export function judgedTransaction(options: JudgedTransactionOptions = {}) {
  const currency = options.currency ?? 'BTC';
  const usdMinor = options.usd ?? 50_00n;
  const amountDue = usdMinor * 10n;
  const chains = new Map<PaymentMethod, Chain>();
  const prices = newPrices();
  const agreed = new Map<PaymentMethod, { height: number; limitMinor: bigint }>();
  const books: Books = newBooks();
  const terms = { feeBps: options.feeBps ?? 0, settlementMs: options.settlementMs ?? DAY };
  const steps: Step[] = [];
  let nowMs = T0;
  let ids = 0n;
  let payments: Payment[] = [];
  let verdict: Verdict | null = null;
  let hurried = true;
  let spoilt = false;
  let refunds: readonly Refund[] = [];
  let transaction: CaseTransaction = newTransaction({
    currency,
    usdMinor,
    amountDue,
    rate: QUOTE,
    toleranceBps: options.toleranceBps ?? 100,
    latePolicy: options.latePolicy ?? 'accept',
    createdAtMs: T0,
    windowEndsAtMs: W,
  });

  for (const code of [currency, currency === 'BTC' ? 'LTC' : 'BTC'] as const) {
    chains.set(code, newChain(code, T0));
    prices.set(code, T0, QUOTE);
  }
  const chain = (code: PaymentMethod = currency): Chain => chains.get(code) as Chain;

  const rateAt = (atMs: number): Rate | null => prices.at(currency, atMs);
  const ask = (word?: (it: Case) => void, portionLeft?: number): Asked =>
    askJudge({ transaction, payments, nowMs, chains, agreed, rateAt, books, refunds, ...terms }, word, portionLeft);

  /** Asks the judge, in portions where the transaction has them, and writes what it says; asked again it must have nothing to add. */
  function decide(word?: (it: Case) => void): void {
    if (options.portionLeft !== undefined) while (write(ask(undefined, options.portionLeft)));
    write(ask(word));
    const again = ask();
    expect(again.it.steps, 'asked twice, the judge does something the second time').toEqual([]);
    expect(JSON.stringify([again.it.transaction, again.it.payments, again.verdict], asText)).toBe(
      JSON.stringify([transaction, payments, verdict], asText),
    );
  }

  /** Whether payments are left for another verdict. */
  function write(answer: Asked): boolean {
    const move: Move = {
      before: { transaction, payments, refunds },
      after: { transaction: answer.it.transaction, payments: [...answer.it.payments], refunds: [...answer.it.refunds] },
      steps: answer.it.steps,
    };
    for (const step of answer.it.steps) if (step.kind === 'post') books.post(step.entry);
    steps.push(...answer.it.steps);
    transaction = answer.it.transaction;
    payments = [...answer.it.payments];
    refunds = [...answer.it.refunds];
    verdict = answer.verdict;
    checkMove(move, { books, chains, nowMs, amountDue, spoilt, steps });
    return answer.it.more === true;
  }

  /** The watchers read what is new; whoever is due is judged, and whoever is not must have nothing to be told. */
  function settle(word?: (it: Case) => void): void {
    for (const one of chains.values()) {
      if (watch(one, payments, { nowMs, arrivalRate: prices.now(one.currency), nextId: () => ++ids })) hurried = true;
    }
    for (const [at, payment] of payments.entries()) {
      if (payment.arrivalRate === null) payments[at] = { ...payment, arrivalRate: prices.now(payment.currency as CurrencyCode) };
    }
    for (;;) {
      const view = chain().view;
      const due =
        hurried ||
        (verdict?.dueAtMs !== null && (verdict?.dueAtMs ?? 0) <= view.timeMs) ||
        payments.some((payment) => isDue(payment, chains.get(payment.currency)?.view));
      if (due) {
        decide();
        hurried = false;
      } else {
        const asleep = ask();
        const missed = asleep.it.steps.length > 0 || asleep.it.transaction.status !== transaction.status;
        if (missed) expect.fail(`nobody woke the judge, which would say ${JSON.stringify(asleep.it.steps, asText)}`);
      }
      if (!transaction.lookupWanted || !chain().up) break;
      transaction = { ...transaction, lookedUpAtMs: view.timeMs, lookupWanted: false };
      hurried = true;
    }
    if (word !== undefined) decide(word);
  }

  settle();
  return {
    books,
    steps,
    chain,
    get transaction() {
      return transaction;
    },
    get status() {
      return transaction.status;
    },
    get payments() {
      return payments;
    },
    get verdict() {
      return verdict as Verdict;
    },
    get now() {
      return nowMs;
    },
    amountDue,
    available: (code: CurrencyCode = currency) => books.of(`merchant:1:available:${code}`),
    receivable: (code: CurrencyCode = currency) => books.of(`asset:receivable:merchant:1:${code}`),
    suspense: (code: CurrencyCode = currency) => books.of(`suspense:txn_1:${code}`),
    fees: (code: CurrencyCode = currency) => books.of(`income:fee:${code}`),
    /** Every status so far. */
    path: () => ['started', ...steps.flatMap((step) => (step.kind === 'status' ? [step.to] : []))],
    /** The rules that changed the status, in order. */
    rules: () => steps.flatMap((step) => (step.kind === 'status' ? [step.rule] : [])),
    announced: () => steps.flatMap((step) => (step.kind === 'announce' ? [step.type] : [])),
    /** Sends payments to the address; the default is the whole price. */
    pay(payment: SentPayment = {}): Tx {
      const tx = broadcast(chain(payment.currency), {
        outputs: payment.split ?? [payment.amount ?? amountDue],
        ...(payment.inputs === undefined ? {} : { inputs: payment.inputs }),
        ...(payment.mined === undefined ? {} : { mined: payment.mined }),
        coinbase: payment.coinbase ?? false,
        lock: payment.lock ?? null,
        atMs: nowMs,
      });
      settle();
      return tx;
    },
    /** Replaces a payment by one with a higher fee (same inputs). */
    replace(tx: Tx, payment: SentPayment = {}): Tx {
      return this.pay({ ...payment, inputs: tx.inputs });
    },
    /** The same payment under another txid, mined; the original is conflicted. */
    malleate(tx: Tx, code: CurrencyCode = currency): Tx {
      const before = transaction.status;
      const twin = broadcast(chain(code), { outputs: tx.outputs, inputs: tx.inputs, atMs: nowMs, mined: true });
      settle();
      if ((before === 'succeeded' || before === 'settled') && transaction.status === 'review') expect.fail('TwinKeepsStatus');
      return twin;
    },
    mine(count = 1, code: CurrencyCode = currency): void {
      mine(chain(code), { count, atMs: nowMs });
      settle();
    },
    /** A block without what waits in the mempool. */
    mineEmpty(count = 1, code: CurrencyCode = currency): void {
      mine(chain(code), { count, atMs: nowMs, only: [] });
      settle();
    },
    mineOnly(...only: Tx[]): void {
      mine(chain(), { count: 1, atMs: nowMs, only });
      settle();
    },
    reorg(depth: number, to: 'mempool' | 'out' | 'dead' = 'mempool', code: CurrencyCode = currency): void {
      reorganise(chain(code), { depth, atMs: nowMs, to });
      spoilt = true;
      settle();
    },
    /** Evicts a transaction from the mempool. */
    evict(tx: Tx, code: CurrencyCode = currency): void {
      leave(chain(code), tx, 'out', nowMs);
      spoilt = true;
      settle();
    },
    doubleSpend(tx: Tx, code: CurrencyCode = currency): void {
      leave(chain(code), tx, 'dead', nowMs);
      spoilt = true;
      settle();
    },
    /** Sends an evicted transaction again. */
    resend(tx: Tx): void {
      if (tx.place === 'out') tx.place = 'mempool';
      settle();
    },
    lock(tx: Tx, lock: Payment['lock']): void {
      tx.lock = lock;
      settle();
    },
    wait(ms: number): void {
      nowMs += ms;
      settle();
    },
    /** Lets the time run to a moment. */
    until(atMs: number): void {
      if (atMs > nowMs) nowMs = atMs;
      settle();
    },
    afterGrace(): void {
      this.until(W + GRACE_MS + SECOND);
    },
    node(state: 'up' | 'down', code: CurrencyCode = currency): void {
      chain(code).up = state === 'up';
      settle();
    },
    /** Two nodes agree up to a height only (−1: they contradict each other), or there is one (null): the judge is asked, as the store does. */
    contest(limitMinor: bigint | null, code: CurrencyCode = currency, height = -1): void {
      if (limitMinor === null) agreed.delete(code);
      else agreed.set(code, { height, limitMinor });
      decide();
    },
    rate(usd: bigint | null, code: CurrencyCode = currency): void {
      prices.set(code, nowMs, usd === null ? null : usd * 10n ** 8n);
      hurried = true; // whoever waits for a rate is asked again every few seconds
      settle();
    },
    /** The merchant pays out of the balance. */
    spend(amount: bigint, code: CurrencyCode = currency): void {
      books.post({
        key: `spend:${books.entries.size}`,
        kind: 'spend',
        parts: [],
        postings: [
          { account: `merchant:1:available:${code}`, amount },
          { account: `outside:${code}`, amount: -amount },
        ],
      });
    },
    ...refundMoves({
      ...{ currency, books, settle },
      read: () => refunds,
      write: (now) => {
        refunds = now;
        hurried = true;
      },
    }),
    cancel: () => settle(cancel),
    accept: () => settle(accept),
    decline: () => settle(decline),
    acceptExcess: () => settle(acceptExcess),
    /** The watcher reads, the judge judges. */
    look: () => settle(),
  };
}
