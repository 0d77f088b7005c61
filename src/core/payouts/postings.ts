// How each step of a payout is booked: the ledger's posting templates, one function each. What enters a merchant's available balance repays
// an open receivable first. Every entry sums to zero (a property test shows it), and each has a key that only this step of this payout has.
import type { CurrencyCode, LedgerCurrency } from '../currency.ts';
import type { Entry, Posting } from '../judge/case.ts';
import { least, minus, negated, plus } from '../money.ts';
import { type BookedSteps, costLines, nextTime, outBy } from './booked-steps.ts';

export type PostedPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly currency: CurrencyCode;
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** The transaction whose payments go back; null for a payout. Its amount contains the fee, and its hold is the transaction's. */
  readonly reimburses: string | null;
  /** The payment hash of what is paid over Lightning, out of our channels; absent or null: it is paid on the chain of its currency. */
  readonly paymentHash?: string | null;
};

const available = ({ merchantId, currency }: PostedPayout) => `merchant:${merchantId}:available:${currency}`;
/** The ledger's account that a payout's hold lies on: the merchant's own, or of a reimbursement that of its transaction. */
export const held = ({ merchantId, currency, reimburses }: PostedPayout) =>
  reimburses === null ? `merchant:${merchantId}:held:${currency}` : `refund_payable:${reimburses}:${currency}`;
/** What leaves with a fee, and so what its hold pays. */
const leaving = ({ amount, reimburses }: PostedPayout, fee: bigint): bigint => (reimburses === null ? plus(amount, fee) : amount);
const receivable = ({ merchantId, currency }: PostedPayout) => `asset:receivable:merchant:${merchantId}:${currency}`;
/** What pays it: our outputs on its chain, or our channels. */
const assets = ({ currency, paymentHash }: PostedPayout) =>
  paymentHash == null ? `asset:chain:${currency}` : `asset:ln:${currency}`;
const outbound = (payout: PostedPayout) => `${assets(payout)}:outbound`;

/**
 * An entry whose key only this step of this payout has, so that booking the step twice changes nothing. Lines of zero are left out.
 * @param step names it within the payout
 */
export function entry(payout: PostedPayout, step: string, kind: string, postings: readonly Posting[]): Entry {
  return {
    key: `po:${payout.id}:${step}`,
    kind,
    postings: postings.filter((posting) => posting.amount !== 0n),
    parts: [],
  };
}

/** Credits `amount` to available; what the merchant owes in this currency is repaid first. */
export function creditRepayingReceivable(payout: PostedPayout, amount: bigint, owed: bigint): readonly Posting[] {
  const repaid = least(owed, amount);
  return [
    { account: receivable(payout), amount: negated(repaid) },
    { account: available(payout), amount: negated(minus(amount, repaid)) },
  ];
}

const AGAIN = 'again:release';

/** The amount and the highest fee leave available. */
export function holdEntry(payout: PostedPayout): Entry {
  const whole = plus(payout.amount, payout.feeMax);
  return entry(payout, 'hold', 'payout_hold', [
    { account: available(payout), amount: whole },
    { account: held(payout), amount: negated(whole) },
  ]);
}

/**
 * A transaction had been signed for it before it was cancelled: its hold is taken again, and what is not available any more its merchant owes.
 */
export function holdAgainEntry(payout: PostedPayout, there: bigint): Entry {
  const whole = plus(payout.amount, payout.feeMax);
  const taken = least(there, whole);
  return entry(payout, 'hold_again', 'payout_hold', [
    { account: available(payout), amount: taken },
    { account: receivable(payout), amount: minus(whole, taken) },
    { account: held(payout), amount: negated(whole) },
  ]);
}

/**
 * Cancelled before anything was signed: the whole hold comes back.
 * @param step of a hold that was taken again: `again:release`
 */
export function releaseEntry(payout: PostedPayout, owed: bigint, step = 'release'): Entry {
  const whole = plus(payout.amount, payout.feeMax);
  return entry(payout, step, 'payout_released', [
    { account: held(payout), amount: whole },
    ...creditRepayingReceivable(payout, whole, owed),
  ]);
}

/**
 * A transaction was signed: what it takes from our outputs is on its way out.
 * @param number of the attempt
 * @param fee its fee, this payout's share
 * @param before the highest share of the attempts before it; null = it is the first. A cheaper one posts nothing
 */
export function signEntry(payout: PostedPayout, number: number, fee: bigint, before: bigint | null): Entry | null {
  const taken = before === null ? leaving(payout, fee) : minus(leaving(payout, fee), leaving(payout, before));
  if (taken <= 0n) return null;
  return entry(payout, `sign:${number}`, 'payout_signed', [
    { account: outbound(payout), amount: taken },
    { account: assets(payout), amount: negated(taken) },
  ]);
}

/**
 * The first confirmation: what left is paid out of the hold, the rest of the hold is available again.
 * @param fee the share of the attempt that was mined
 * @param booked the highest share of all attempts: what `outbound` holds for it
 */
export function completeEntries(payout: PostedPayout, fee: bigint, booked: bigint, owed: bigint): readonly Entry[] {
  const rest = payout.reimburses === null ? minus(payout.feeMax, fee) : 0n;
  const spent = leaving(payout, fee);
  const out = leaving(payout, booked);
  const final = entry(payout, 'final', 'payout_paid', [
    { account: held(payout), amount: spent },
    { account: outbound(payout), amount: negated(out) },
    // a cheaper attempt won: the difference never left
    { account: assets(payout), amount: minus(out, spent) },
  ]);
  if (rest === 0n) return [final];
  return [
    final,
    entry(payout, 'rest', 'payout_released', [
      { account: held(payout), amount: rest },
      ...creditRepayingReceivable(payout, rest, owed),
    ]),
  ];
}

/**
 * At final depth another attempt may have won than the one that was booked: the difference is the service's, not the merchant's.
 * @param fee the share of the attempt that is final; where none is any more, what was charged
 * @param charged what its merchant pays
 */
export function trueUpEntry(payout: PostedPayout, fee: bigint, charged: bigint, booked: BookedSteps): Entry | null {
  const more = minus(leaving(payout, fee), leaving(payout, charged));
  const accounts = {
    expense: `expense:network_fee:${payout.currency}`,
    income: `income:network_fee:${payout.currency}`,
    assets: assets(payout),
  };
  const lines = costLines(accounts, more, outBy(booked, 'true_up'));
  return lines.length === 0 ? null : nextTime(entry(payout, 'true_up', 'payout_fee_difference', lines), booked);
}

/**
 * No attempt can ever be mined: what was on its way out comes back, and so does a payout's hold (that of a reimbursement waits for the judge
 * of its transaction).
 * @param booked the highest share of all attempts
 * @param isAgain its hold is one that was taken again
 */
export function giveBackEntries(payout: PostedPayout, booked: bigint, owed: bigint, isAgain = false): readonly Entry[] {
  const out = leaving(payout, booked);
  const failed = entry(payout, 'failed', 'payout_failed', [
    { account: outbound(payout), amount: negated(out) },
    { account: assets(payout), amount: out },
  ]);
  return payout.reimburses === null ? [failed, releaseEntry(payout, owed, isAgain ? AGAIN : undefined)] : [failed];
}

/**
 * A completed payout that a reorganisation undid for good: the merchant gets back what it had cost. What a reimbursement had taken is held
 * again, until the judge of its transaction says where it belongs.
 * @param fee what the merchant paid for it
 */
export function returnEntry(payout: PostedPayout, fee: bigint, owed: bigint, booked: BookedSteps): Entry {
  const whole = leaving(payout, fee);
  const back =
    payout.reimburses === null
      ? creditRepayingReceivable(payout, whole, owed)
      : [{ account: held(payout), amount: negated(whole) }];
  return nextTime(entry(payout, 'return', 'payout_returned', [{ account: assets(payout), amount: whole }, ...back]), booked);
}

/** Outputs that a batch wanted to spend and that a transaction which is not ours has spent for good. */
export function lostInputsEntry(batchId: string, currency: CurrencyCode, amount: bigint, booked: BookedSteps): Entry {
  const postings = [
    { account: `expense:reorg_loss:${currency}`, amount },
    { account: `asset:chain:${currency}`, amount: negated(amount) },
  ];
  return nextTime({ key: `batch:${batchId}:lost`, kind: 'inputs_lost', postings, parts: [] }, booked);
}

/** How the step is named in which one that had failed is paid: there is one `final` at most. */
export const foundPaid = (booked: BookedSteps): string => (booked.has('final') ? 'paid_again' : 'final');

/**
 * One that had failed and was given back is paid after all: what it has cost is taken from its merchant again. What he has spent since he owes.
 * @param there what is available
 * @param booked where it had been completed once, that was undone by a return
 */
export function paidAfterAllEntries(
  payout: PostedPayout,
  fee: bigint,
  there: bigint,
  booked: BookedSteps,
): readonly [Entry, Entry] {
  const whole = plus(payout.amount, fee);
  const taken = least(there, whole);
  const hold = entry(payout, 'paid:hold_again', 'payout_hold', [
    { account: available(payout), amount: taken },
    { account: receivable(payout), amount: minus(whole, taken) },
    { account: held(payout), amount: negated(whole) },
  ]);
  const paid = entry(payout, foundPaid(booked), 'payout_paid', [
    { account: held(payout), amount: whole },
    { account: assets(payout), amount: negated(whole) },
  ]);
  return [nextTime(hold, booked), nextTime(paid, booked)];
}

/**
 * A reimbursement that had failed is paid after all: the judge has given its payments to somebody else since, so the service bears it.
 * @param isPaid false: its transaction has left the chain again; null where nothing differs from what is booked
 */
export function borneEntry(payout: PostedPayout, isPaid: boolean, booked: BookedSteps): Entry | null {
  const loss = `expense:reorg_loss:${payout.currency}`;
  const accounts = { expense: loss, income: loss, assets: assets(payout) };
  const lines = costLines(accounts, isPaid ? payout.amount : 0n, outBy(booked, 'borne'));
  return lines.length === 0 ? null : nextTime(entry(payout, 'borne', 'payout_borne', lines), booked);
}

/** What was booked as lost was not: a transaction of ours has spent it, which is in the chain after all. */
export function foundInputsEntry(batchId: string, currency: CurrencyCode, amount: bigint, booked: BookedSteps): Entry {
  const postings = [
    { account: `asset:chain:${currency}`, amount },
    { account: `expense:reorg_loss:${currency}`, amount: negated(amount) },
  ];
  return nextTime({ key: `batch:${batchId}:lost_undone`, kind: 'inputs_found', postings, parts: [] }, booked);
}

/** What a transaction took from our outputs that nobody here has signed, and that pays no payout of this database. */
export function unknownOutflowEntry(txid: string, currency: CurrencyCode, amount: bigint): Entry {
  return {
    key: `unknown:${currency.toLowerCase()}:${txid}`,
    kind: 'unknown_outflow',
    postings: [
      { account: `expense:unknown_outflow:${currency}`, amount },
      { account: `asset:chain:${currency}`, amount: negated(amount) },
    ],
    parts: [],
  };
}

/**
 * Outputs that no entry knew have paid for something that is booked: they were the service's.
 * @param txid the transaction, or the payout that was paid where nobody has named one
 */
export function unknownInflowEntry(txid: string, currency: CurrencyCode, amount: bigint): Entry {
  return {
    key: `found:${currency.toLowerCase()}:${txid}`,
    kind: 'unknown_inflow',
    postings: [
      { account: `asset:chain:${currency}`, amount },
      { account: `equity:operator:${currency}`, amount: negated(amount) },
    ],
    parts: [],
  };
}

/**
 * What was booked as lost has paid a payout that was decided by hand before: it was booked then, so the loss is undone.
 * @param against what was booked for it by hand: `equity:operator` where outputs that are none of ours were taken to have paid it, else our own asset
 */
export function adoptedEntry(
  payoutId: string,
  of: { readonly currency: LedgerCurrency; readonly amount: bigint; readonly against: string },
): Entry {
  const { currency, amount, against } = of;
  return {
    key: `adopted:${payoutId}`,
    kind: 'payout_adopted',
    postings: [
      { account: against, amount },
      { account: `expense:unknown_outflow:${currency}`, amount: negated(amount) },
    ],
    parts: [],
  };
}
