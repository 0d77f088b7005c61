// The required depth of a payment, by what it is worth alone or together with others, and whether the payment has it. Nothing is decided
// here.
import {
  confirmationsToReach,
  finalDepth,
  type RequiredDepth,
  reaches,
  requiredDepth,
  requiredDepthsOfTiers,
} from '../confirmations.ts';
import type { PaymentMethod } from '../currency.ts';
import { greatest } from '../money.ts';
import { type Rate, usdForCryptoUp, usdForPartsUp, type Valued } from '../rate.ts';
import type { Case, ChainView, Payment } from './case.ts';
import { chainOf, confirmationsOf, inQuotedCurrency, isLive, lateMinor } from './payments.ts';

function hasReached(it: Case, payment: Payment, required: RequiredDepth): boolean {
  return (
    isLive(payment) &&
    reaches(
      payment.currency,
      { confirmations: confirmationsOf(it, payment), coinbase: payment.coinbase, lock: payment.lock },
      required,
    )
  );
}

/** The required depth of the transaction, by its own USD amount. */
export function depthForTransaction(it: Case): RequiredDepth {
  return requiredDepth(it.transaction.currency, it.transaction.usdMinor);
}
/**
 * The rate for a payment's own USD value: the quote; for a late payment that of its arrival where that is higher; for another currency
 * always that of its arrival. Null = not known: nobody had a price when it arrived, and the first one afterwards will count. Some nodes date
 * an arrival in whole seconds, so a price that came after it may be read as its own: the one that it was valued at counts where that is
 * higher, and alone where a clock that was set back has left its arrival in time to come.
 */
function ownRate(it: Case, payment: Payment): Rate | null {
  const { arrivalRate, valueRate } = payment;
  const arrived = arrivalRate === null || valueRate === null ? (arrivalRate ?? valueRate) : greatest(arrivalRate, valueRate);
  if (!inQuotedCurrency(it, payment)) return arrived;
  const { rate } = it.transaction;
  if (lateMinor(payment) === 0n) return rate;
  return arrived === null ? null : greatest(rate, arrived);
}
/** What these payments of one currency (or a part of each) are worth together, in cents; null when the value of one of them is not known. */
function worthOf(it: Case, payments: readonly Payment[], part: (payment: Payment) => bigint): bigint | null {
  const [first] = payments;
  if (first === undefined) return 0n;
  const parts: Valued[] = [];
  for (const payment of payments) {
    const rate = ownRate(it, payment);
    if (rate === null) return null;
    parts.push({ minor: part(payment), rate });
  }
  return usdForPartsUp(parts, first.currency);
}
/** The required depth for an amount of this payment, by its own USD value. */
export function depthForAmount(it: Case, payment: Payment, amount: bigint): RequiredDepth {
  const rate = ownRate(it, payment);
  return requiredDepth(payment.currency, rate === null ? null : usdForCryptoUp(amount, payment.currency, rate));
}
/**
 * Whether these payments (or a part of each) are there and deep enough to be credited together: whatever part of them a reorganisation of some
 * depth could remove must have the required depth for the value of that part. So ten payments need the depth of their sum, but a small one
 * beside a large one only its own.
 */
function haveReachedTogether(it: Case, payments: readonly Payment[], part: (payment: Payment) => bigint): boolean {
  const groups = Map.groupBy(payments, (payment) => payment.currency);
  return [...groups].every(([currency, group]) => {
    let rest: readonly Payment[] = group;
    while (rest.length > 0) {
      const required = requiredDepth(currency, worthOf(it, rest, part));
      const shallow = rest.filter((payment) => !hasReached(it, payment, required));
      if (shallow.length === rest.length) return false;
      rest = shallow;
    }
    return true;
  });
}
/** Whether everything in suspense is there and deep enough to be credited together. */
export function suspenseReached(it: Case): boolean {
  const payments = it.payments.filter((payment) => payment.inSuspense > 0n);
  return haveReachedTogether(it, payments, (payment) => payment.inSuspense);
}
/** Whether what is late of these payments is deep enough to complete a price together (rule 23): as deep as what it was worth when it arrived needs. */
export function lateReached(it: Case, payments: readonly Payment[]): boolean {
  return haveReachedTogether(
    it,
    payments.filter((payment) => lateMinor(payment) > 0n),
    lateMinor,
  );
}
/**
 * Those of these payments that may be booked now: where together they are worth more than the limit (or their value is not known), only
 * those that also have their required depth on the part of the chain that two of our nodes hold.
 * @param reached whether a payment has the depth that its booking requires
 */
export function undisputed(
  it: Case,
  payments: readonly Payment[],
  reached: (it: Case, payment: Payment) => boolean,
): readonly Payment[] {
  const large = largeCurrencies(it, payments);
  if (large.size === 0) return payments;
  const agreed = upToAgreed(it);
  return payments.filter((payment) => !large.has(payment.currency) || (isAgreed(it, payment) && reached(agreed, payment)));
}
/** Whether the payments in suspense must stay there, because two of our nodes do not hold their blocks, with their required depth. */
export function isDisputed(it: Case): boolean {
  const payments = it.payments.filter((payment) => payment.inSuspense > 0n);
  const large = largeCurrencies(it, payments);
  if (large.size === 0) return false;
  const areAgreed = payments.every((payment) => !large.has(payment.currency) || isAgreed(it, payment));
  return !areAgreed || !suspenseReached(upToAgreed(it));
}
/** Only our own node reports a lock, so two nodes must hold the payment's block itself. */
function isAgreed(it: Case, { currency, height }: Payment): boolean {
  const agreed = it.chains.get(currency)?.agreed;
  if (agreed === undefined) return true;
  return height !== null && height <= agreed.height && agreed.unconfirmed?.has(height) !== true;
}
/** The case with each chain cut off at the highest block that two of our nodes hold. */
const upToAgreed = (it: Case): Case => cutOff(it, ({ agreed }) => agreed?.height);

/** The case with each chain cut off at a height, where one is named. */
export function cutOff(it: Case, heightOf: (view: ChainView, currency: PaymentMethod) => number | undefined): Case {
  const cut = (view: ChainView, height = view.tipHeight): ChainView => ({
    ...view,
    tipHeight: Math.min(view.tipHeight, height),
  });
  const chains = new Map([...it.chains].map(([code, view]) => [code, cut(view, heightOf(view, code))]));
  return { ...it, chains };
}
function largeCurrencies(it: Case, payments: readonly Payment[]): ReadonlySet<PaymentMethod> {
  const all = [...new Set(payments.map((payment) => payment.currency))];
  return new Set(all.filter((currency) => isLarge(it, payments, currency)));
}
function isLarge(it: Case, payments: readonly Payment[], currency: PaymentMethod): boolean {
  const limit = it.chains.get(currency)?.agreed?.limitMinor;
  if (limit === undefined) return false;
  const worth = worthOf(
    it,
    payments.filter((payment) => payment.currency === currency),
    (payment) => payment.amount,
  );
  return worth === null || worth > limit;
}
/** Whether a payment has the depth that the whole price of the transaction needs (`R` of rule 4), not only its own value's. */
export function reachesTransaction(it: Case, payment: Payment): boolean {
  return hasReached(it, payment, depthForTransaction(it));
}
function reachesOwn(it: Case, payment: Payment): boolean {
  return hasReached(it, payment, depthForAmount(it, payment, payment.amount));
}
/**
 * Whether a payment that is not part of the price can be booked: at the required depth of its own value. A payment that was lost and is
 * back restores what its loss took, so it needs the required depth of that, and in the transaction's currency also that of the price.
 */
export function reachesSuspense(it: Case, payment: Payment): boolean {
  if (payment.owed === 0n) return reachesOwn(it, payment);
  return (
    hasReached(it, payment, depthForAmount(it, payment, payment.owed)) &&
    (!inQuotedCurrency(it, payment) || reachesTransaction(it, payment))
  );
}
/** Whether a payment has its currency's final depth (behaviour §3, last column), or the lock that stands for it. */
export function isFinal(it: Case, payment: Payment): boolean {
  return hasReached(it, payment, finalDepth(payment.currency));
}

/** The next height of its chain at which this payment reaches a threshold; null when there is none ahead. */
export function nextHeight(it: Case, payment: Payment): number | null {
  if (payment.state === 'gone') {
    const chain = chainOf(it, payment);
    return payment.lastHeight !== null && chain.tipHeight < payment.lastHeight ? payment.lastHeight : null;
  }
  if (payment.height === null) return null;
  const confirmations = confirmationsOf(it, payment);
  const depth = { confirmations, coinbase: payment.coinbase, lock: payment.lock };
  // no threshold is deeper than this one
  if (reaches(payment.currency, depth, finalDepth(payment.currency))) return null;
  let next = Number.POSITIVE_INFINITY;
  const wait = (required: RequiredDepth): void => {
    const reached = confirmationsToReach(payment.currency, depth, required);
    if (reached > confirmations) next = Math.min(next, reached);
  };
  wait(depthForAmount(it, payment, payment.amount));
  wait(finalDepth(payment.currency));
  if (inQuotedCurrency(it, payment)) wait(depthForTransaction(it));
  if (payment.owed > 0n) wait(depthForAmount(it, payment, payment.owed));
  const isLate = it.transaction.status === 'pending' && payment.classified && lateMinor(payment) > 0n;
  if (isLate || (payment.inSuspense > 0n && it.transaction.status === 'review'))
    requiredDepthsOfTiers(payment.currency).forEach(wait);
  return Number.isFinite(next) ? payment.height + next - 1 : null;
}
