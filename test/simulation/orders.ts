// An order as the rules of rules.ts know it: its terms, what arrived for it, and what that is worth and how deep it lies. The numbers are those of
// behaviour §3, taken from nothing of the product.
import { type ChainCode, deepEnough, maturityOf, unitOf } from './behaviour.ts';
import type { OpenRefund } from './order-refunds.ts';

export type Terms = {
  readonly currency: ChainCode;
  readonly cents: bigint;
  /** Cents for one unit of the currency when it was quoted. */
  readonly price: bigint;
  readonly due: bigint;
  readonly toleranceBps: bigint;
  readonly policy: 'accept' | 'review';
  /** Both on the clock as it is set now. */
  createdAt: number;
  windowEnd: number;
};

/** One output to the order, and what our node showed of it when it was last read. */
export type Arrived = {
  readonly name: string;
  readonly currency: ChainCode;
  readonly amount: bigint;
  readonly coinbase: boolean;
  /** So much of it was on time. */
  onTime: bigint;
  readonly arrivedPrice: bigint;
  place: 'pool' | 'chain' | 'gone' | 'dead';
  height: number | null;
  instant: boolean;
  chainLock: boolean;
  firstSeen: number;
  goneSince: number | null;
  booked: { credit: bigint; suspense: bigint } | null;
  /** What an open reimbursement has taken of it. */
  taken: { readonly credit: bigint; readonly suspense: bigint } | null;
  /** What its loss took from the merchant and has not been restored. */
  took: bigint;
  /** Whether it is among the payments that paid the order. */
  counts: boolean;
  isNew: boolean;
  /** What it replaces: one event with it, so it restores what the loss of that took. */
  readonly replaces: readonly Arrived[];
};

export type Order = {
  readonly terms: Terms;
  readonly arrived: Arrived[];
  status: string;
  cause: 'late' | 'loss' | 'other' | 'fallen' | null;
  /** Rule 11 is barred: cancelled, declined or fallen once. */
  byHand: boolean;
  cancelled: boolean;
  refused: boolean;
  succeededAt: number;
  /** Which payments were credited depends on the order in which they are taken. */
  isAmbiguous: boolean;
  refund: OpenRefund | null;
  /** Payments have gone back to the customer: what counts for `confirmations` since is nowhere said. */
  wasRefunded: boolean;
  readonly path: string[];
};

/** What the watchers have read: the tip of each chain, the time up to which the order's own chain was read, and dates and prices. */
export type View = {
  readonly now: number;
  readonly readUntil: number;
  readonly tip: (currency: ChainCode) => number;
  readonly dateOf: (currency: ChainCode, height: number) => number;
  readonly priceAt: (currency: ChainCode, at: number) => bigint;
};

export const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);
export const total = <T>(list: readonly T[], of: (one: T) => bigint): bigint => list.reduce((sum, one) => sum + of(one), 0n);
export const isLive = (one: Arrived): boolean => one.place === 'pool' || one.place === 'chain';

export const toleranceOf = ({ due, toleranceBps, price, currency }: Terms): bigint =>
  least((due * toleranceBps) / 10_000n, (500n * unitOf(currency)) / price);
/** The tolerance in dollars, as units × cents, so that nothing is rounded. */
export const toleranceScaled = ({ toleranceBps, cents, currency }: Terms): bigint =>
  least((cents * toleranceBps * unitOf(currency)) / 10_000n, 500n * unitOf(currency));

export const newOrder = (terms: Terms): Order => ({
  terms,
  arrived: [],
  status: 'started',
  cause: null,
  byHand: false,
  cancelled: false,
  refused: false,
  succeededAt: 0,
  isAmbiguous: false,
  refund: null,
  wasRefunded: false,
  path: ['started'],
});

export const centsUp = (scaled: bigint, currency: ChainCode): bigint => (scaled + unitOf(currency) - 1n) / unitOf(currency);
/** The dollars of one payment by itself: at the quote, and where it came late at its arrival if that is more. */
export function ownScaled(order: Order, one: Arrived): bigint {
  const { currency, price } = order.terms;
  if (one.currency !== currency) return one.amount * one.arrivedPrice;
  return one.onTime < one.amount ? one.amount * most(price, one.arrivedPrice) : one.amount * price;
}

export function deepAt(view: View, one: Arrived, cents: bigint, tip = view.tip(one.currency)): boolean {
  if (one.place === 'pool' && !one.instant) return false;
  if (!isLive(one)) return false;
  const confirmations = one.height === null ? 0 : Math.max(0, tip - one.height + 1);
  return deepEnough(one.currency, cents, { confirmations, instant: one.instant, chain: one.chainLock }, one.coinbase);
}
export const ownDeep = (order: Order, view: View, one: Arrived): boolean =>
  deepAt(view, one, centsUp(ownScaled(order, one), one.currency));
/** What of it lies in available and suspense. */
export const lies = ({ booked }: Arrived): bigint => (booked === null ? 0n : booked.credit + booked.suspense);
export const ownOf = ({ terms, arrived }: Order): Arrived[] => arrived.filter((one) => one.currency === terms.currency);

/** Accepted together: what one reorganisation could remove has the depth for the value of all of that. */
export function deepTogether(order: Order, view: View, list: readonly Arrived[], tip?: number): boolean {
  return list.every((one) => {
    const atRisk = list.filter((other) => other.currency === one.currency && depthOf(view, other) <= depthOf(view, one));
    return deepAt(
      view,
      one,
      centsUp(
        total(atRisk, (other) => ownScaled(order, other)),
        one.currency,
      ),
      tip,
    );
  });
}
export const depthOf = (view: View, { currency, height }: Arrived): number =>
  height === null ? 0 : view.tip(currency) - height + 1;

export type Paying = { readonly payments: readonly Arrived[]; readonly amountOf: (one: Arrived) => bigint };
/** Of these payments those that count: what is on time, and by rule 23 what is late, when it has R of what it was worth at its arrival. */
export function paying(
  { terms }: Order,
  among: readonly Arrived[],
  isDeep: (late: readonly Arrived[]) => boolean = () => true,
): Paying {
  const late = (one: Arrived): bigint => one.amount - one.onTime;
  const missing = most(0n, terms.due - total(among, (one) => one.onTime));
  const isShort = missing > toleranceOf(terms);
  const completes = total(among, late) >= missing - toleranceOf(terms);
  const worth = total(among, (one) => late(one) * one.arrivedPrice);
  const counts =
    isShort &&
    completes &&
    worth >= missing * terms.price - toleranceScaled(terms) &&
    isDeep(among.filter((one) => late(one) > 0n));
  const amountOf = (one: Arrived): bigint => (counts ? one.amount : one.onTime);
  return { payments: among.filter((one) => amountOf(one) > 0n), amountOf };
}

export const isImmature = (view: View, one: Arrived): boolean =>
  one.coinbase &&
  one.place === 'chain' &&
  one.height !== null &&
  view.tip(one.currency) - one.height + 1 < maturityOf(one.currency);

/** The order enters a status. */
export function go(order: Order, to: string, view: View): undefined {
  order.status = to;
  order.path.push(to);
  if (to === 'succeeded') order.succeededAt = view.now;
  if (to !== 'review') order.cause = null;
}
