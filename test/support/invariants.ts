// The invariants of the model Credit, checked after every move, under the model's names.
import { expect } from 'vitest';
import { requiredDepth } from '../../src/core/confirmations.ts';
import type { PaymentMethod } from '../../src/core/currency.ts';
import type { CaseTransaction, Payment, Refund, Step } from '../../src/core/judge/case.ts';
import { usdForCryptoDown } from '../../src/core/rate.ts';
import { TRANSITIONS } from '../../src/core/transaction-states.ts';
import type { Books } from './books.ts';
import { type Chain, isAlive } from './chain-truth.ts';

type Moment = {
  readonly transaction: CaseTransaction;
  readonly payments: readonly Payment[];
  /** Reimbursements of whose end the judge has taken no note. */
  readonly refunds: readonly Refund[];
};
export type Move = { readonly before: Moment; readonly after: Moment; readonly steps: readonly Step[] };
export type Around = {
  readonly books: Books;
  readonly chains: ReadonlyMap<PaymentMethod, Chain>;
  readonly nowMs: number;
  readonly amountDue: bigint;
  /** A payment was ever lost. */
  readonly spoilt: boolean;
  /** All steps so far. */
  readonly steps: readonly Step[];
};

const total = (amounts: readonly bigint[]): bigint => amounts.reduce((a, b) => a + b, 0n);
const PAID = new Set(['confirmed', 'succeeded', 'settled']);

export function checkMove(move: Move, around: Around): void {
  const { transaction, payments } = move.after;
  oneRule(move);
  placesOfUnits(payments, around);
  creditAtR(move, around);
  const enough = around.amountDue - toleranceOf(transaction);
  const right = payments.filter((payment) => payment.currency === transaction.currency && hasPayer(payment));

  if (PAID.has(transaction.status)) expect(['none', 'accepted'], 'WordStands').toContain(transaction.merchantDecision);
  const shown = transaction.confirmedAtMs;
  if (['started', 'timedout', 'cancelled', 'pending', 'timedout_checked'].includes(transaction.status)) expect(shown).toBeNull();
  if (PAID.has(transaction.status)) expect(shown).not.toBeNull();

  for (const step of move.steps) {
    if (step.kind !== 'status') continue;
    if (step.to === 'succeeded') {
      expect(total(payments.map((payment) => payment.inAvailable)) > 0n, 'NoEmptySuccess').toBe(true);
      const byPolicy = move.steps.some((one) => one.kind === 'status' && one.rule === 11);
      const covered =
        total(right.map((payment) => payment.inAvailable)) >= enough || payments.every((payment) => !payment.wasLost);
      if (transaction.merchantDecision !== 'accepted' && !byPolicy) expect(covered, 'NoEmptySuccess').toBe(true);
    }
    if ((step.from === 'succeeded' || step.from === 'settled') && step.to === 'review') {
      const lost = move.before.payments.some(
        (payment) =>
          payment.inAvailable + payment.inRefund > 0n && payments.some((now) => now.id === payment.id && now.partKey === null),
      );
      expect(lost, 'ExtraCannotReopen').toBe(true);
    }
  }
  for (const step of move.steps) {
    if (step.kind === 'refund' && step.change === 'taken') takesTheWhole(move, step.id);
    if (step.kind !== 'status') continue;
    if (step.rule === 11) worthThePrice(move);
    if (step.to === 'settled') expect(move.after.refunds, 'an order is settled while a reimbursement is open').toEqual([]);
    if (step.rule === 13) nothingOfItsOwn(move);
  }
  payerNotAtFault(move, around, enough);
  oldPriceEnds(move, enough);
}

/** Every step is a row of the table, and they follow each other. */
function oneRule({ before, after, steps }: Move): void {
  let status = before.transaction.status;
  for (const step of steps) {
    if (step.kind !== 'status') continue;
    expect(step.from).toBe(status);
    expect(
      TRANSITIONS.some((row) => row.from === step.from && row.to === step.to && row.rule === step.rule),
      `OneRule: ${step.from} to ${step.to} by rule ${step.rule}`,
    ).toBe(true);
    status = step.to;
  }
  expect(after.transaction.status).toBe(status);
  expect((after.transaction.reviewCause !== null) === (status === 'review'), 'a review has a cause, nothing else has one').toBe(
    true,
  );
}

/** NonNegative, NeverTwice, Conservation, BackRestores, ReceivableFirst: the payments and the books tell the same story. */
function placesOfUnits(payments: readonly Payment[], { books, chains }: Around): void {
  for (const payment of payments) {
    for (const [name, value] of Object.entries(payment))
      if (typeof value === 'bigint' && value < 0n) expect.fail(`NonNegative: ${name}`);
    const placed = payment.inAvailable + payment.inSuspense + payment.inRefund + payment.sentBack;
    if (payment.partKey !== null) {
      if (placed !== payment.amount) expect.fail('NeverTwice');
      if (payment.owed !== 0n) expect.fail('BackRestores');
    } else if (payment.inAvailable + payment.inSuspense !== 0n) expect.fail('NeverTwice');
    if (payment.onTimeMinor > payment.amount) expect.fail('on time beyond its amount');
  }
  for (const [code, chain] of chains) {
    const booked = new Set(
      payments.flatMap((payment) => (payment.currency === code && payment.partKey !== null ? [payment.txid] : [])),
    );
    const spent = chain.txs.flatMap((tx) => (booked.has(tx.txid) ? tx.inputs : []));
    if (new Set(spent).size !== spent.length) expect.fail('NeverTwicePerPayment');
  }
  for (const code of chains.keys()) {
    const own = payments.filter((payment) => payment.currency === code);
    const available = books.of(`merchant:1:available:${code}`);
    const receivable = books.of(`asset:receivable:merchant:1:${code}`);
    const spent = books.of(`outside:${code}`);
    expect(books.of(`suspense:txn_1:${code}`), 'Conservation').toBe(total(own.map((payment) => payment.inSuspense)));
    expect(books.of(`refund_payable:txn_1:${code}`), 'Conservation').toBe(total(own.map((payment) => payment.inRefund)));
    expect(available + spent - receivable, 'Conservation').toBe(
      total(
        own.map(
          (payment) => payment.inAvailable - payment.fee - (payment.partKey === null ? payment.sentBack + payment.inRefund : 0n),
        ),
      ),
    );
    expect(books.of(`asset:chain:${code}`), 'Conservation').toBe(
      total(own.filter((payment) => payment.partKey !== null).map((payment) => payment.amount)),
    );
    if (receivable > 0n) expect(available, 'ReceivableFirst').toBe(0n);
  }
}

/** What is credited to the merchant has the confirmations that its value needs, and by the price also those of the price. */
function creditAtR({ before, after, steps }: Move, { chains }: Around): void {
  const { transaction } = after;
  const byPrice = steps.some((step) => step.kind === 'status' && step.rule === 4);
  for (const payment of after.payments) {
    const was = before.payments.find((one) => one.id === payment.id);
    const gained = payment.inAvailable - (was?.inAvailable ?? 0n);
    if (gained <= 0n) continue;
    const right = payment.currency === transaction.currency && hasPayer(payment);
    const restored = was !== undefined && was.owed > 0n;
    const rate = right ? transaction.rate : payment.arrivalRate;
    const value = rate === null ? null : usdForCryptoDown(gained, payment.currency, rate);
    const wanted = byPrice ? [] : [requiredDepth(payment.currency, value)];
    if (byPrice || (restored && right)) wanted.push(requiredDepth(payment.currency, transaction.usdMinor));
    const tip = chains.get(payment.currency)?.view.tipHeight ?? 0;
    const depth = payment.height === null ? 0 : tip - payment.height + 1;
    for (const required of wanted)
      expect(
        depth >= required.depth || (required.lock !== null && payment.lock !== null),
        `CreditAtR: ${payment.currency} ${depth} of ${required.depth}`,
      ).toBe(true);
    if (payment.coinbase && hasPayer(payment)) expect(depth >= 100, 'CreditAtR: coinbase').toBe(true);
  }
}

/** What a block of Ethereum's chain pays by itself is nobody's payment; a miner of Bitcoin's family may pay with his. */
const hasPayer = ({ coinbase, currency }: Pick<Payment, 'coinbase' | 'currency'>): boolean => !coinbase || currency !== 'ETH';

/** What the policy credits was worth the dollars, less the tolerance (rule 11); whatever went back is not among it. */
function worthThePrice({ after: { transaction, payments } }: Move): void {
  const right = payments.filter((payment) => payment.currency === transaction.currency && hasPayer(payment));
  const cents = total(right.map((payment) => payment.inAvailable * (payment.valueRate ?? 0n))) / 10n ** 14n;
  expect(cents + 1n >= transaction.usdMinor - toleranceOf(transaction) / 10n, 'WorthThePrice').toBe(true);
}

/** Of an undecided order the whole is everything that is in a block. */
function takesTheWhole({ before, after }: Move, id: string): void {
  const refund = after.refunds.find((one) => one.id === id);
  if (refund?.part !== 'whole' || !['review', 'declined'].includes(before.transaction.status)) return;
  for (const payment of after.payments) {
    const isHere = hasPayer(payment) && payment.currency === refund.currency && payment.state === 'mined' && payment.present;
    if (isHere && payment.sentBack < payment.amount) expect(refund.shares.has(payment.id), 'TakesTheWhole').toBe(true);
  }
}

/** Rule 13 by another currency: nothing of the order's own is there. */
function nothingOfItsOwn({ before, after }: Move): void {
  const { currency } = after.transaction;
  const ended = before.refunds.find((one) => one.state === 'completed');
  if (ended === undefined || ended.currency === currency) return;
  const own = after.payments.filter((payment) => payment.currency === currency && payment.present && hasPayer(payment));
  expect(total(own.map((payment) => payment.amount - payment.sentBack)), 'NothingOfItsOwn').toBe(0n);
}

/** What was sent in time and is deep on the chain is enough: then the payer is not at fault. */
function payerNotAtFault({ after }: Move, { chains, spoilt, steps }: Around, enough: bigint): void {
  const { transaction, payments } = after;
  if (spoilt || transaction.merchantDecision !== 'none' || transaction.reviewCause === 'other') return;
  if (transaction.status !== 'declined' && transaction.status !== 'review') return;
  if (steps.some((step) => step.kind === 'status' && step.rule === 24)) return;
  const chain = chains.get(transaction.currency) as Chain;
  const sent = chain.txs.filter(
    (tx) =>
      isAlive(tx) &&
      hasPayer({ ...tx, currency: transaction.currency }) &&
      tx.height !== null &&
      tx.madeAtMs <= transaction.windowEndsAtMs + 60_000,
  );
  const missedByOutage = payments.some(
    (payment) => sent.some((tx) => tx.txid === payment.txid) && payment.seenAtMs > transaction.windowEndsAtMs + 2 * 3_600_000,
  );
  if (!missedByOutage) expect(total(sent.flatMap((tx) => tx.outputs)) < enough, 'PayerNotAtFault').toBe(true);
}

/** Late units are credited at the old price only when those booked with them were worth the dollars that were missing. */
function oldPriceEnds({ before, after, steps }: Move, enough: bigint): void {
  if (!steps.some((step) => step.kind === 'status' && step.rule === 4)) return;
  const { transaction, payments } = after;
  const right = payments.filter((payment) => payment.currency === transaction.currency && hasPayer(payment));
  const booked = right.filter((payment) => !before.payments.some((was) => was.id === payment.id && was.partKey !== null));
  const late = booked.filter((payment) => payment.partKey !== null && payment.amount > payment.onTimeMinor);
  if (!late.some((payment) => payment.inAvailable > payment.onTimeMinor)) return;
  const onTime = total(
    booked.filter((payment) => payment.state === 'mined' || payment.state === 'mempool').map((payment) => payment.onTimeMinor),
  );
  const worth = total(late.map((payment) => ((payment.valueRate ?? 0n) * (payment.amount - payment.onTimeMinor)) / 10n ** 14n));
  expect(worth + 2n >= (enough - onTime) / 10n, 'OldPriceEnds').toBe(true);
}

export function toleranceOf(transaction: CaseTransaction): bigint {
  const percent = (transaction.amountDue * BigInt(transaction.toleranceBps)) / 10_000n;
  return percent < 5_000n ? percent : 5_000n;
}
