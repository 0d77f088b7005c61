// How each decision is booked: the ledger's posting templates, one function each, applied to the case at once. Whatever enters a merchant's
// available balance repays an open receivable first. Every entry sums to zero per currency (a property test shows it).
import { balanceOf, type PaymentMethod } from '../currency.ts';
import { CHANNELS } from '../lightning/postings.ts';
import { atLeastZero, basisPointsDown, least, minus, negated, plus, sum } from '../money.ts';
import { BalancesNeeded, type Case, type Part, type Payment, type Posting, type Step } from './case.ts';
import { isBooked } from './payments.ts';

/** The balance of a payment's currency is in each name; what a payment brings lies where it came to. */
const account = {
  asset: (currency: PaymentMethod) => (currency === balanceOf(currency) ? `asset:chain:${currency}` : CHANNELS),
  available: (it: Case, currency: PaymentMethod) => `merchant:${it.transaction.merchantId}:available:${balanceOf(currency)}`,
  receivable: (it: Case, currency: PaymentMethod) =>
    `asset:receivable:merchant:${it.transaction.merchantId}:${balanceOf(currency)}`,
  suspense: (it: Case, currency: PaymentMethod) => `suspense:${it.transaction.id}:${balanceOf(currency)}`,
  refundPayable: (it: Case, currency: PaymentMethod) => `refund_payable:${it.transaction.id}:${balanceOf(currency)}`,
  feeIncome: (currency: PaymentMethod) => `income:fee:${balanceOf(currency)}`,
};

function lockedBalance(it: Case, currency: PaymentMethod): { available: bigint; receivable: bigint } {
  if (it.balances === null) throw new BalancesNeeded();
  let balance = it.balances.get(balanceOf(currency));
  if (balance === undefined) {
    balance = { available: 0n, receivable: 0n };
    it.balances.set(balanceOf(currency), balance);
  }
  return balance;
}

/** Postings that credit `amount` to available: the receivable is repaid first. */
export function creditRepayingReceivable(it: Case, currency: PaymentMethod, amount: bigint): Posting[] {
  if (amount === 0n) return [];
  const balance = lockedBalance(it, currency);
  const repaid = least(balance.receivable, amount);
  balance.receivable = minus(balance.receivable, repaid);
  balance.available = plus(balance.available, minus(amount, repaid));
  return [
    { account: account.receivable(it, currency), amount: negated(repaid) },
    { account: account.available(it, currency), amount: negated(minus(amount, repaid)) },
  ];
}

function post(it: Case, entry: { key: string; kind: string; postings: readonly Posting[]; parts?: readonly Part[] }): void {
  const postings = entry.postings.filter((posting) => posting.amount !== 0n);
  it.steps.push({ kind: 'post', entry: { key: entry.key, kind: entry.kind, postings, parts: entry.parts ?? [] } });
}

/**
 * Posts what a verdict does with one payment. Consecutive postings of the same kind in the same currency share one entry, because anybody
 * can pay in thousands of outputs. The entry has the key of its first part, which no other payment can have.
 */
function postPart(
  it: Case,
  { kind, currency, postings, part }: { kind: string; currency: PaymentMethod; postings: readonly Posting[]; part: Part },
): void {
  const at = openEntry(it, kind, account.asset(currency));
  if (at === null) {
    post(it, { key: part.key, kind, postings: postings.filter((posting) => posting.amount !== 0n), parts: [part] });
    return;
  }
  const { entry } = it.steps[at] as Extract<Step, { kind: 'post' }>;
  (entry.parts as Part[]).push(part);
  // in place: a price may be paid in thousands of outputs
  for (const posting of postings) addTo(entry.postings as Posting[], posting);
}

/** The position of the last entry of this kind and chain, if only a change of status and entries of this kind follow it; otherwise null. */
function openEntry({ steps }: Case, kind: string, chain: string): number | null {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at] as Step;
    if (step.kind === 'announce' || (step.kind === 'post' && step.entry.kind !== kind)) return null;
    if (step.kind === 'post' && step.entry.postings.some((posting) => posting.account === chain)) return at;
  }
  return null;
}

function addTo(lines: Posting[], posting: Posting): void {
  const at = lines.findIndex((line) => line.account === posting.account);
  const amount = plus(lines[at]?.amount ?? 0n, posting.amount);
  if (at < 0 && amount !== 0n) lines.push(posting);
  else if (at >= 0 && amount === 0n) lines.splice(at, 1);
  else if (at >= 0) lines[at] = { account: posting.account, amount };
}

/** Keys of one payment at a place where another one was booked begin at a multiple of it, so that no two ever have the same. */
export const KEYS_OF_ONE = 1_000;

/** `dep:btc:<txid>:<vout>`, and `#2`, `#3` … for a payment that was lost and is back. */
function partKeyOf(payment: Payment): string {
  const base = `dep:${payment.currency.toLowerCase()}:${payment.txid}:${payment.vout}`;
  return payment.generation === 0 ? base : `${base}#${payment.generation + 1}`;
}

/**
 * The fee for one part of a credit: rounded down once over the whole credit, not in each part. `before` = the parts that were charged
 * already.
 */
function feeOf(it: Case, part: bigint, before: bigint): bigint {
  return minus(basisPointsDown(plus(before, part), it.feeBps), basisPointsDown(before, it.feeBps));
}

/**
 * Books a payment for the first time: `credit` of it to the merchant (less the service's fee), the rest to suspense.
 * @param before what other payments of the same credit brought already
 */
export function bookDeposit(it: Case, payment: Payment, credit: bigint, before = 0n): void {
  if (isBooked(payment)) throw new Error(`payment ${payment.txid}:${payment.vout} is booked already`);
  const fee = feeOf(it, credit, before);
  postDeposit(it, payment, { toMerchant: minus(credit, fee), fee });
  payment.inAvailable = credit;
}

/** Books a payment to suspense that is not, or no longer, part of the price; first it restores what its earlier loss took from the merchant. */
export function bookToSuspense(it: Case, payment: Payment): void {
  if (isBooked(payment)) throw new Error(`payment ${payment.txid}:${payment.vout} is booked already`);
  const restored = least(payment.owed, payment.amount);
  const fee = least(payment.owedFee, minus(payment.amount, restored));
  postDeposit(it, payment, { toMerchant: restored, fee });
  // the part that had been reimbursed, or promised for a reimbursement, before the loss is no longer the merchant's to give
  payment.inAvailable = minus(payment.credited, least(payment.credited, plus(payment.sentBack, payment.inRefund)));
}

/** The entry for a payment that is booked, and the payment's new state: what goes neither to the merchant nor to the fee is in suspense. */
function postDeposit(
  it: Case,
  payment: Payment,
  { toMerchant, fee }: { readonly toMerchant: bigint; readonly fee: bigint },
): void {
  const credited = plus(toMerchant, fee);
  const suspended = minus(payment.amount, credited);
  const key = partKeyOf(payment);
  postPart(it, {
    kind: 'deposit',
    currency: payment.currency,
    postings: [
      { account: account.asset(payment.currency), amount: payment.amount },
      ...creditRepayingReceivable(it, payment.currency, toMerchant),
      { account: account.feeIncome(payment.currency), amount: negated(fee) },
      { account: account.suspense(it, payment.currency), amount: negated(suspended) },
    ],
    part: { key, amount: payment.amount, reversesKey: null },
  });
  Object.assign(payment, {
    credited,
    fee,
    suspended,
    inSuspense: suspended,
    partKey: key,
    judgedBlockHash: payment.blockHash,
  });
  Object.assign(payment, { wasLost: false, owed: 0n, owedFee: 0n });
}

/** Moves what these payments have in suspense to the merchant's available balance (rules 11, 12, excess). */
export function acceptSuspense(it: Case, payments: readonly Payment[]): void {
  for (const currency of new Set(payments.map((payment) => payment.currency))) {
    const moved = payments.filter((payment) => payment.currency === currency && payment.inSuspense > 0n);
    const total = sum(moved.map((payment) => payment.inSuspense));
    if (total === 0n) continue;
    let before = 0n;
    const fees = moved.map((payment) => {
      const fee = feeOf(it, payment.inSuspense, before);
      before = plus(before, payment.inSuspense);
      return fee;
    });
    post(it, {
      key: `rev:${it.transaction.id}:accept:${it.transaction.sequence}:${currency.toLowerCase()}`,
      kind: 'accepted',
      postings: [
        { account: account.suspense(it, currency), amount: total },
        ...creditRepayingReceivable(it, currency, minus(total, sum(fees))),
        { account: account.feeIncome(currency), amount: negated(sum(fees)) },
      ],
    });
    moved.forEach((payment, index) => {
      payment.fee = plus(payment.fee, fees[index] ?? 0n);
      payment.credited = plus(payment.credited, payment.inSuspense);
      payment.inAvailable = plus(payment.inAvailable, payment.inSuspense);
      payment.inSuspense = 0n;
    });
  }
}

/** The accounts that a reimbursement of a currency moves units between. */
export function refundAccounts(it: Case, currency: PaymentMethod) {
  return {
    available: account.available(it, currency),
    suspense: account.suspense(it, currency),
    refundPayable: account.refundPayable(it, currency),
    balance: () => lockedBalance(it, currency),
  };
}

/** Posts a step of a reimbursement; each step happens once. */
export function postRefund(it: Case, step: RefundStep, postings: readonly Posting[]): void {
  const { id, kind } = step;
  const lines = postings.filter((posting) => posting.amount !== 0n);
  const key = `po:${id}:${kind === 'reimbursement_hold' ? 'hold' : 'release'}`;
  it.steps.push({ kind: 'post', entry: { key, kind, postings: lines, parts: [], refundId: id } });
}
type RefundStep = { readonly id: string; readonly kind: 'reimbursement_hold' | 'reimbursement_released' };

/**
 * Reverses a lost payment: each unit is taken from where it is now (suspense, a reimbursement that was not sent, the fee, the merchant's
 * available); only the rest, and what was already sent back or can no longer be stopped, becomes the receivable.
 */
export function reverseDeposit(it: Case, payment: Payment): void {
  const wasCounted = isTheMerchants(it, payment);
  const isLeaving = it.refunds.some((refund) => refund.state === 'committed' && refund.shares.has(payment.id));
  const leaving = isLeaving ? payment.inRefund : 0n;
  const stopped = minus(payment.inRefund, leaving);
  const wanted = minus(plus(plus(payment.inAvailable, payment.sentBack), leaving), payment.fee);
  const postings: Posting[] = [{ account: account.asset(payment.currency), amount: negated(payment.amount) }];
  // a waiting reimbursement has taken the whole payment, fee included: the fee then goes back to where it was taken from
  if (wanted < 0n) postings.push(...creditRepayingReceivable(it, payment.currency, negated(wanted)));
  if (wanted > 0n) {
    const balance = lockedBalance(it, payment.currency);
    const taken = least(balance.available, wanted);
    balance.available = minus(balance.available, taken);
    balance.receivable = plus(balance.receivable, minus(wanted, taken));
    postings.push({ account: account.available(it, payment.currency), amount: taken });
    postings.push({ account: account.receivable(it, payment.currency), amount: minus(wanted, taken) });
  }
  postings.push({ account: account.feeIncome(payment.currency), amount: payment.fee });
  postings.push({ account: account.suspense(it, payment.currency), amount: payment.inSuspense });
  postings.push({ account: account.refundPayable(it, payment.currency), amount: stopped });
  const key = `reorg:${payment.currency.toLowerCase()}:${payment.txid}:${payment.vout}:${payment.generation + 1}`;
  const part = { key, amount: negated(payment.amount), reversesKey: payment.partKey };
  postPart(it, { kind: 'deposit_lost', currency: payment.currency, postings, part });
  Object.assign(payment, {
    owed: atLeastZero(wanted),
    owedFee: wanted < 0n ? 0n : payment.fee,
    wasLost: wasCounted,
    generation: payment.generation + 1,
    partKey: null,
  });
  Object.assign(payment, {
    credited: 0n,
    suspended: 0n,
    fee: 0n,
    inAvailable: 0n,
    inSuspense: 0n,
    inRefund: leaving,
    judgedBlockHash: null,
  });
}

/** Whether a payment, or a part of it, is the merchant's, or was it until a reimbursement took it. */
export function isTheMerchants(it: Case, payment: Payment): boolean {
  return payment.inAvailable > 0n || it.refunds.some((refund) => (refund.shares.get(payment.id)?.available ?? 0n) > 0n);
}
