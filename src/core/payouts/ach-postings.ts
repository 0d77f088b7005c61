// How each step of a payout to a bank account is booked. The dollars are bought with a balance of the merchant when it is requested (`fx` is the
// service's position in each currency); the fee is earned when the payout is completed. Every entry sums to zero in each currency.
import type { CurrencyCode } from '../currency.ts';
import type { Entry, Posting } from '../judge/case.ts';
import { basisPointsUp, least, minus, negated, plus, sum } from '../money.ts';
import { type BookedSteps, nextTime } from './booked-steps.ts';

/** Amounts in cents, but for `source.amount`. */
export type PostedAchPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  /** What the account gets. */
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** The balance that it is paid from, and what it took of it. */
  readonly source: { readonly currency: CurrencyCode; readonly amount: bigint };
};

const FEE_BPS = 100;
const BANK = 'asset:bank:USD';
const OUTBOUND = 'asset:bank:USD:outbound';
const LOST = 'expense:unknown_outflow:USD';
const OPERATOR = 'equity:operator:USD';

/** The fee of an amount in cents: 1 %, rounded up to the cent. */
export function achFee(cents: bigint): bigint {
  return basisPointsUp(cents, FEE_BPS);
}

const whole = ({ amount, feeMax }: PostedAchPayout): bigint => plus(amount, feeMax);
const held = ({ merchantId }: PostedAchPayout): string => `merchant:${merchantId}:held:USD`;
const fx = ({ source }: PostedAchPayout): string => `fx:${source.currency}`;

function entry(payout: PostedAchPayout, step: string, kind: string, postings: readonly Posting[]): Entry {
  return { key: `po:${payout.id}:${step}`, kind, postings: postings.filter(({ amount }) => amount !== 0n), parts: [] };
}

/** What enters available; what the merchant owes in this currency is repaid first. */
function enter({ merchantId, source: { currency } }: PostedAchPayout, amount: bigint, owed: bigint): readonly Posting[] {
  const repaid = least(owed, amount);
  return [
    { account: `asset:receivable:merchant:${merchantId}:${currency}`, amount: negated(repaid) },
    { account: `merchant:${merchantId}:available:${currency}`, amount: negated(minus(amount, repaid)) },
  ];
}

/** Crypto leaves available, and the dollars that it buys are held: amount and fee. */
export function achHoldEntry(payout: PostedAchPayout): Entry {
  const { merchantId, source } = payout;
  return entry(payout, 'hold', 'payout_hold', [
    { account: `merchant:${merchantId}:available:${source.currency}`, amount: source.amount },
    { account: fx(payout), amount: negated(source.amount) },
    { account: 'fx:USD', amount: whole(payout) },
    { account: held(payout), amount: negated(whole(payout)) },
  ]);
}

/** Nothing was handed over: the conversion is undone, and exactly what it took comes back. */
export function achReleaseEntry(payout: PostedAchPayout, owed: bigint): Entry {
  return entry(payout, 'release', 'payout_released', [
    { account: held(payout), amount: whole(payout) },
    { account: 'fx:USD', amount: negated(whole(payout)) },
    { account: fx(payout), amount: payout.source.amount },
    ...enter(payout, payout.source.amount, owed),
  ]);
}

/** It is in a file: what the account gets is on its way out of our bank's. */
export function achHandOverEntry(payout: PostedAchPayout): Entry {
  return entry(payout, 'sign:1', 'payout_signed', [
    { account: OUTBOUND, amount: payout.amount },
    { account: BANK, amount: negated(payout.amount) },
  ]);
}

/** The days in which it could be returned are over: it is paid out of the hold, and the fee is ours. */
export function achCompleteEntry(payout: PostedAchPayout): Entry {
  return entry(payout, 'final', 'payout_paid', [
    { account: held(payout), amount: whole(payout) },
    { account: OUTBOUND, amount: negated(payout.amount) },
    { account: 'income:ach_fee:USD', amount: negated(payout.feeMax) },
  ]);
}

/** The bank refused the whole file: nothing has left. */
export function achRefusedEntries(payout: PostedAchPayout, owed: bigint, booked: BookedSteps): readonly Entry[] {
  const failed = entry(payout, 'failed', 'payout_failed', [
    { account: OUTBOUND, amount: negated(payout.amount) },
    { account: BANK, amount: payout.amount },
  ]);
  return [nextTime(failed, booked), nextTime(achReleaseEntry(payout, owed), booked)];
}

/**
 * The bank has executed a file that it had refused: what its refusal gave back is taken again, and is on its way out.
 * @param taken what is available of it; the rest its merchant owes
 */
export function achExecutedEntries(payout: PostedAchPayout, taken: bigint, booked: BookedSteps): readonly Entry[] {
  const { merchantId, source } = payout;
  const hold = entry(payout, 'paid:hold_again', 'payout_hold', [
    { account: `merchant:${merchantId}:available:${source.currency}`, amount: taken },
    { account: `asset:receivable:merchant:${merchantId}:${source.currency}`, amount: minus(source.amount, taken) },
    { account: fx(payout), amount: negated(source.amount) },
    { account: 'fx:USD', amount: whole(payout) },
    { account: held(payout), amount: negated(whole(payout)) },
  ]);
  const left = entry(payout, 'executed', 'payout_signed', [
    { account: OUTBOUND, amount: payout.amount },
    { account: BANK, amount: negated(payout.amount) },
  ]);
  return [nextTime(hold, booked), nextTime(left, booked)];
}

/**
 * The bank has sent it back: its dollars, fee included, buy the currency of the source again.
 * @param bought what they are worth now, minor units of the source's currency
 * @param isCompleted it was completed before
 */
export function achReturnEntry(payout: PostedAchPayout, bought: bigint, isCompleted: boolean, owed: bigint): Entry {
  const from: readonly Posting[] = isCompleted
    ? [
        { account: BANK, amount: payout.amount },
        { account: 'income:ach_fee:USD', amount: payout.feeMax },
      ]
    : [
        { account: BANK, amount: payout.amount },
        { account: OUTBOUND, amount: negated(payout.amount) },
        { account: held(payout), amount: whole(payout) },
      ];
  return entry(payout, 'return', 'payout_returned', [
    ...from,
    { account: 'fx:USD', amount: negated(whole(payout)) },
    { account: fx(payout), amount: bought },
    ...enter(payout, bought, owed),
  ]);
}

/** The service's own money in the bank. */
export function bankCapitalEntry(cents: bigint): Entry {
  return {
    key: 'capital:usd:bank',
    kind: 'capital',
    postings: [
      { account: BANK, amount: cents },
      { account: OPERATOR, amount: negated(cents) },
    ],
    parts: [],
  };
}

/** What a bank file has paid to nobody whom this database knows. */
export function bankOutflowEntry(file: string, cents: bigint): Entry {
  return {
    key: `unknown:usd:${file}`,
    kind: 'unknown_outflow',
    postings: [
      { account: LOST, amount: cents },
      { account: BANK, amount: negated(cents) },
    ],
    parts: [],
  };
}

/**
 * An entry that was booked as lost has paid a payout, of which the same was booked by hand: that stands, and as much is not lost. Where the payout
 * is more than the entry, its merchant has paid the rest to the operator.
 * @param cents of the entry
 */
export function bankAdoptedEntry(payoutId: string, amount: bigint, cents: bigint): Entry {
  const both = least(amount, cents);
  const postings = [
    { account: BANK, amount },
    { account: LOST, amount: negated(both) },
    { account: OPERATOR, amount: minus(both, amount) },
  ];
  return { key: `adopted:${payoutId}`, kind: 'payout_adopted', postings: moving(postings), parts: [] };
}

const moving = (postings: readonly Posting[]): readonly Posting[] => postings.filter(({ amount }) => amount !== 0n);

/** An entry that was booked as lost, and what was booked by hand for the payout that it has paid; 0 for none. */
export type LostCents = { readonly cents: bigint; readonly booked: bigint };

/**
 * Lost entries of a file have come back: the bank has returned one, or refused the file after all. What was booked for payouts that they had paid
 * comes back with these.
 * @param what `refused`, or which entry was returned
 * @returns null where nothing is left besides
 */
export function bankLostBackEntry(file: string, what: string, entries: readonly LostCents[], booked: BookedSteps): Entry | null {
  const both = sum(entries.map((entry) => least(entry.cents, entry.booked)));
  const paid = sum(entries.map(({ cents }) => cents));
  const byHand = sum(entries.map((entry) => entry.booked));
  const postings = moving([
    { account: BANK, amount: minus(paid, byHand) },
    { account: LOST, amount: minus(both, paid) },
    { account: OPERATOR, amount: minus(byHand, both) },
  ]);
  if (postings.length === 0) return null;
  return nextTime({ key: `unknown:usd:${file}:${what}`, kind: 'unknown_outflow', postings, parts: [] }, booked);
}

/** It has executed the file all the same. */
export function bankOutflowExecutedEntry(file: string, cents: bigint, booked: BookedSteps): Entry {
  const { key, kind, postings, parts } = bankOutflowEntry(file, cents);
  return nextTime({ key: `${key}:executed`, kind, postings, parts }, booked);
}
