// What the rules of rules.ts do with what is booked: losses are reversed, what is back restores what its loss took, and the rest lies in suspense.
import { MINUTE } from './behaviour.ts';
import { giveBack } from './order-refunds.ts';
import { deepAt, go, isLive, least, type Order, ownDeep, ownOf, toleranceOf, total, type View } from './orders.ts';

/** Rule 17 and its kin: whatever is booked and lost is reversed. */
export function losses(order: Order, view: View): void {
  for (const one of order.arrived) {
    if (one.booked === null) continue;
    const gone = one.place === 'gone' && one.goneSince !== null && view.now - one.goneSince >= 10 * MINUTE;
    if (one.place !== 'dead' && !gone) continue;
    // nothing of it has left: resolving is possible again
    if (order.refund?.members.includes(one)) giveBack(order);
    const { credit } = one.booked;
    one.booked = null;
    one.took += credit;
    if (credit > 0n && (order.status === 'succeeded' || order.status === 'settled')) {
      go(order, 'review', view);
      order.cause = 'loss';
    }
  }
}

/** A replacement is one event with what it replaces: it takes over what that loss took, all of it that pays no more than the price (rule 5). */
export function inherit(order: Order): void {
  const { terms } = order;
  for (const one of order.arrived) {
    const lost = one.replaces.filter((other) => other.took > 0n);
    if (one.booked !== null || one.took > 0n || lost.length === 0 || !isLive(one)) continue;
    const elsewhere = total(ownOf(order), (other) => (lost.includes(other) ? 0n : other.took + (other.booked?.credit ?? 0n)));
    const sum = total(lost, (other) => other.took);
    const isWhole = one.currency === terms.currency && elsewhere + one.amount <= terms.due + toleranceOf(terms);
    one.took = isWhole ? one.amount : least(sum, one.amount);
    one.counts = lost.some((other) => other.counts);
    let left = one.took;
    for (const other of lost) {
      const part = least(left, other.took);
      other.took -= part;
      left -= part;
    }
  }
}

/** Back with R, of what it restores: a new entry in every status, which restores first what the loss took; the rest lies in suspense with it. */
export function returns(order: Order, view: View): void {
  for (const one of order.arrived) {
    if (one.booked !== null || one.took === 0n) continue;
    const isOwn = one.currency === order.terms.currency;
    const credit = least(one.took, one.amount);
    const isForPrice = isOwn && one.counts;
    if (!ownDeep(order, view, { ...one, amount: credit }) || (isForPrice && !deepAt(view, one, order.terms.cents))) continue;
    one.booked = { credit, suspense: one.amount - credit };
    one.took -= credit;
  }
}

/** Suspense: in every status but started, pending and confirmed; another currency in every one. */
export function suspense(order: Order, view: View): void {
  const waits = ['started', 'pending', 'confirmed'].includes(order.status);
  for (const one of order.arrived) {
    if (one.booked !== null || one.took > 0n || (waits && one.currency === order.terms.currency)) continue;
    if (ownDeep(order, view, one)) one.booked = { credit: 0n, suspense: one.amount };
  }
}
