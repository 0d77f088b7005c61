// The rules of behaviour §3 a second time, written from their words alone: told what our node shows of each payment and what the merchant
// said, this says which status an order has, what of each payment is credited and what lies in suspense. Nothing is taken from the product.
import { DAY, HOUR, isFinalBy, MINUTE, unitOf } from './behaviour.ts';
import { inherit, losses, returns, suspense } from './order-books.ts';
import { endHopeless, take } from './order-refunds.ts';
import {
  type Arrived,
  deepAt,
  deepTogether,
  go,
  isImmature,
  isLive,
  least,
  type Order,
  ownDeep,
  ownOf,
  type Paying,
  paying,
  toleranceOf,
  toleranceScaled,
  total,
  type View,
} from './orders.ts';

/** All that follows from what was read. */
export function judge(order: Order, view: View): void {
  const text = (): string =>
    JSON.stringify(order, (key, value) =>
      ['replaces', 'members'].includes(key) ? undefined : typeof value === 'bigint' ? String(value) : value,
    );
  for (let round = 0; round < 20; round++) {
    const before = text();
    losses(order, view);
    inherit(order);
    returns(order, view);
    step(order, view);
    // what is new has had its effect
    for (const one of order.arrived) one.isNew = false;
    suspense(order, view);
    endHopeless(order, view);
    take(order);
    if (text() === before) break;
  }
}

function step(order: Order, view: View): undefined {
  const { terms } = order;
  const own = ownOf(order).filter(isLive);
  switch (order.status) {
    case 'started':
    case 'timedout':
    case 'timedout_checked':
      if (own.some((one) => one.onTime > 0n)) return go(order, 'pending', view);
      if (own.length > 0) return toReview(order, view, 'late');
      if (otherIsNew(order)) return toReview(order, view, 'other');
      if (order.status === 'started' && view.readUntil >= terms.windowEnd) return go(order, 'timedout', view);
      if (order.status === 'timedout' && view.readUntil >= terms.createdAt + DAY) return go(order, 'timedout_checked', view);
      return undefined;
    case 'cancelled':
      if (own.length > 0) return toReview(order, view, 'late');
      if (otherIsNew(order)) return toReview(order, view, 'other');
      return undefined;
    case 'pending':
      return pending(order, view);
    case 'review':
    case 'declined':
      return undecided(order, view);
    case 'succeeded':
      if (order.refund === null && view.readUntil >= order.succeededAt + DAY && isFinal(order, view)) go(order, 'settled', view);
  }
}
const otherIsNew = ({ arrived, terms }: Order): boolean =>
  arrived.some((one) => one.isNew && one.currency !== terms.currency && isLive(one));
function toReview(order: Order, view: View, cause: NonNullable<Order['cause']>): undefined {
  go(order, 'review', view);
  order.cause = cause;
}

/** Also while a reimbursement of it is open. */
const creditedOf = ({ booked, taken }: Arrived): bigint => (booked?.credit ?? 0n) + (taken?.credit ?? 0n);

/** Rule 19: what was credited is final. */
function isFinal(order: Order, view: View): boolean {
  return order.arrived
    .filter((one) => creditedOf(one) > 0n)
    .every((one) => {
      const tip = view.tip(one.currency);
      if (one.place !== 'chain' || one.height === null) return false;
      return isFinalBy(one.currency, { confirmations: tip - one.height + 1, chain: one.chainLock });
    });
}

function pending(order: Order, view: View): undefined {
  const { terms } = order;
  const by = paidBy(order, view);
  if (by !== null) {
    const date = view.dateOf(terms.currency, by.height);
    const worth = total(by.paid.payments, by.paid.amountOf) * view.priceAt(terms.currency, date);
    if (date <= terms.windowEnd + DAY || worth >= terms.cents * unitOf(terms.currency) - toleranceScaled(terms)) {
      // what else has R by now is credited with it
      const deep = ownOf(order).filter((one) => isLive(one) && deepAt(view, one, terms.cents));
      return credit(
        order,
        view,
        paying(order, deep, (late) => deepTogether(order, view, late)),
      );
    }
    order.byHand = true;
    return toReview(order, view, 'fallen');
  }
  const left = ownOf(order).filter((one) => one.place !== 'dead' && !isGone72(one, view));
  if (left.length === 0) return go(order, view.now < terms.windowEnd ? 'started' : 'timedout', view);
  if (view.readUntil <= terms.windowEnd + MINUTE || !left.every((one) => deepAt(view, one, terms.cents)) || isPaid(order, left))
    return undefined;
  order.byHand = true;
  go(order, 'declined', view);
}
const isGone72 = (one: Arrived, view: View): boolean =>
  one.place === 'gone' && one.goneSince !== null && view.now - one.goneSince >= 72 * HOUR;
function isPaid(order: Order, among: readonly Arrived[]): boolean {
  const { payments, amountOf } = paying(order, among);
  return total(payments, amountOf) >= order.terms.due - toleranceOf(order.terms);
}

/** By which block the payments with R first sufficed (rules 4 and 23), and which they were then. */
function paidBy(order: Order, view: View): { readonly paid: Paying; readonly height: number } | null {
  const { terms } = order;
  const own = ownOf(order).filter(isLive);
  const tip = view.tip(terms.currency);
  const first = Math.min(tip, ...own.flatMap((one) => one.height ?? []));
  for (let height = first; height <= tip; height++) {
    const paid = paying(
      order,
      own.filter((one) => deepAt(view, one, terms.cents, height)),
      (late) => deepTogether(order, view, late, height),
    );
    if (total(paid.payments, paid.amountOf) >= terms.due - toleranceOf(terms)) return { paid, height };
  }
  return null;
}

/** Rules 4 and 5. */
function credit(order: Order, view: View, { payments, amountOf }: Paying): undefined {
  const { terms } = order;
  const sum = total(payments, amountOf);
  let left = sum <= terms.due + toleranceOf(terms) ? sum : terms.due;
  // which of several that have R at once get the credit is nowhere said
  order.isAmbiguous = payments.length > 1 && sum > left;
  for (const one of payments) {
    const part = least(left, amountOf(one));
    one.booked = { credit: part, suspense: one.amount - part };
    one.counts = true;
    left -= part;
  }
  go(order, 'confirmed', view);
  go(order, 'succeeded', view);
}

function undecided(order: Order, view: View): undefined {
  const { terms } = order;
  const own = ownOf(order);
  const fresh = own.filter((one) => one.isNew && isLive(one));
  const isOnlyOther = order.status === 'review' && order.cause === 'other' && own.every(({ booked }) => booked === null);
  if (isOnlyOther && !order.cancelled && !order.refused && own.some((one) => isLive(one) && one.onTime > 0n))
    return go(order, 'pending', view);
  if (order.status === 'declined' && (fresh.length > 0 || otherIsNew(order)))
    return toReview(order, view, fresh.length > 0 ? 'late' : 'other');
  if (order.status === 'declined') return undefined;
  if (isOnlyOther && own.some(isLive)) order.cause = 'late';
  if (order.refund !== null) return undefined;
  if (order.cause === 'loss') return wayBack(order, view);
  if (order.cause !== 'late' || order.byHand || terms.policy !== 'accept') return undefined;
  suspense(order, view);
  const here = own.filter((one) => ownDeep(order, view, one));
  // R twice: the price is compared with what has that of the price, and what is credited beside it has that of its own value
  const worth = total(
    here.filter((one) => deepAt(view, one, terms.cents)),
    (one) => one.amount * one.arrivedPrice,
  );
  if (worth < terms.cents * unitOf(terms.currency) - toleranceScaled(terms)) return undefined;
  // what came in another currency is credited too
  const others = order.arrived.filter((one) => one.currency !== terms.currency && (one.booked?.suspense ?? 0n) > 0n);
  if (!deepTogether(order, view, [...here, ...others])) return undefined;
  if (own.some((one) => (one.booked?.suspense ?? 0n) > 0n && !here.includes(one))) return undefined;
  acceptAll(order, view);
}

/** Rule 17: review → succeeded by itself. */
function wayBack(order: Order, view: View): undefined {
  const { terms } = order;
  const restored = order.arrived.every((one) => one.took === 0n);
  const credited = total(ownOf(order), (one) => one.booked?.credit ?? 0n);
  if (!restored && credited < terms.due - toleranceOf(terms)) return undefined;
  go(order, 'confirmed', view);
  go(order, 'succeeded', view);
}

/** Suspense → available. */
function acceptAll(order: Order, view: View): undefined {
  for (const one of order.arrived) {
    if (one.booked === null || one.booked.suspense === 0n) continue;
    one.booked = { credit: one.booked.credit + one.booked.suspense, suspense: 0n };
    if (one.currency === order.terms.currency) one.counts = true;
  }
  go(order, 'confirmed', view);
  go(order, 'succeeded', view);
}

export type Word = 'cancel' | 'accept' | 'acceptExcess' | 'decline';

/** Whether the merchant may say it now; if so, it is done. */
export function say(order: Order, word: Word, view: View): boolean {
  const inSuspense = order.arrived.filter((one) => (one.booked?.suspense ?? 0n) > 0n);
  const areDeep = order.refund === null && inSuspense.length > 0 && deepTogether(order, view, inSuspense);
  if (word === 'cancel') {
    if (order.status === 'cancelled') return true;
    // no payment is in a block, whichever of them count
    const isUnconfirmed = order.status === 'pending' && ownOf(order).every((one) => one.place !== 'chain');
    if (order.status !== 'started' && !isUnconfirmed) return false;
    go(order, 'cancelled', view);
    order.cancelled = true;
    order.byHand = true;
    for (const one of order.arrived) one.onTime = 0n;
  } else if (word === 'decline') {
    if (order.status !== 'review' || order.refund !== null) return false;
    go(order, 'declined', view);
    order.refused = true;
    order.byHand = true;
  } else if (word === 'accept') {
    if (!['review', 'declined'].includes(order.status) || !areDeep) return false;
    order.refused = false;
    acceptAll(order, view);
  } else {
    if (['started', 'pending', 'confirmed'].includes(order.status) || !areDeep) return false;
    for (const one of inSuspense)
      one.booked = { credit: (one.booked?.credit ?? 0n) + (one.booked?.suspense ?? 0n), suspense: 0n };
  }
  return true;
}

export const received = (order: Order): bigint => total(ownOf(order).filter(isLive), (one) => one.amount);

/** The least over the payments that count: while pending those that are to pay the price, then those credited; in review and declined all. */
export function confirmations(order: Order, view: View): number {
  const { status, arrived } = order;
  const live = arrived.filter(isLive);
  const over = ['review', 'declined'].includes(status)
    ? live
    : status === 'pending'
      ? paying(order, ownOf(order).filter(isLive)).payments
      : ownOf(order).filter((one) => creditedOf(one) > 0n);
  const shown = over.filter((one) => ['review', 'declined'].includes(status) || !isImmature(view, one));
  if (shown.length === 0 || ['started', 'timedout', 'timedout_checked', 'cancelled'].includes(status)) return 0;
  return Math.min(...shown.map((one) => (one.height === null ? 0 : view.tip(one.currency) - one.height + 1)));
}
