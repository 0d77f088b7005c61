// Reimbursements of the orders of rules.ts, from the words of behaviour §3: which payments one takes, from where, when it may leave, and what
// ends it. Whether it is in a block is told by the walk.
import { finalDepthOf, HOUR } from './behaviour.ts';
import { type Arrived, go, isLive, lies, type Order, ownOf, total, type View } from './orders.ts';

export type Part = 'whole' | 'excess';
export type OpenRefund = {
  readonly part: Part;
  readonly members: readonly Arrived[];
  /** Whether its payments were taken from where they lay: once all of them are booked. */
  isTaken: boolean;
};

const MAY_BE_WHOLE = ['review', 'declined', 'succeeded', 'settled'];
const UNDECIDED = ['review', 'declined'];
const NEVER = ['started', 'pending', 'confirmed'];

/** What it would take now; null where it must be refused. @param available what the merchant has, in the order's currency */
export function refundable(order: Order, part: Part, available: bigint): readonly Arrived[] | null {
  if (order.refund !== null) return null;
  if (part === 'whole' ? !MAY_BE_WHOLE.includes(order.status) : NEVER.includes(order.status)) return null;
  const own = ownOf(order);
  const booked = own.filter((one) => (part === 'whole' ? lies(one) : (one.booked?.suspense ?? 0n)) > 0n);
  if (part === 'whole' && total(booked, (one) => one.booked?.credit ?? 0n) > available) return null;
  if (!UNDECIDED.includes(order.status) && booked.length > 0) return booked;
  const waiting = own.filter((one) => one.booked === null && isLive(one));
  // one that was lost and is back, but not booked yet
  if (waiting.some((one) => one.took > 0n)) return null;
  // asked for before that: it is taken and waits
  const mined = [...booked, ...waiting.filter((one) => one.place === 'chain')];
  const all = mined.length > 0 ? mined : waiting;
  return all.length > 0 ? all : null;
}

/** It is taken: its payments wait to be sent. */
export function openRefund(order: Order, part: Part, members: readonly Arrived[]): void {
  order.refund = { part, members, isTaken: false };
  take(order);
}

/** Once all of them are booked they are taken from where they lie. */
export function take(order: Order): void {
  const { refund } = order;
  if (refund === null || refund.isTaken || !refund.members.every((one) => one.booked !== null)) return;
  refund.isTaken = true;
  for (const one of refund.members) {
    const { credit, suspense } = one.booked as NonNullable<Arrived['booked']>;
    one.taken = { credit: refund.part === 'whole' ? credit : 0n, suspense };
    one.booked = { credit: credit - one.taken.credit, suspense: 0n };
  }
}

/** It ends without having left: everything is where it was. */
export function giveBack(order: Order): void {
  for (const one of order.refund?.members ?? []) {
    if (one.booked !== null && one.taken !== null)
      one.booked = { credit: one.booked.credit + one.taken.credit, suspense: one.booked.suspense + one.taken.suspense };
    one.taken = null;
  }
  order.refund = null;
}

/** Ends a reimbursement whose money is not booked yet and can be waited for no longer: it will not come, or its time is over. */
export function endHopeless(order: Order, view: View): void {
  const { refund } = order;
  if (refund === null || refund.isTaken) return;
  const others = ownOf(order).filter((one) => !refund.members.includes(one) && (one.booked?.suspense ?? 0n) > 0n);
  const isOver = refund.members.some((one) => {
    if (one.booked !== null || one.place === 'chain') return false;
    return one.place === 'dead' || view.now >= one.firstSeen + 72 * HOUR || others.some((other) => isFinal(view, other));
  });
  if (isOver) giveBack(order);
}

const isFinal = (view: View, one: Arrived): boolean =>
  one.place === 'chain' &&
  (one.chainLock || (one.height !== null && view.tip(one.currency) - one.height + 1 >= finalDepthOf(one.currency)));

/** Reimbursed only from the final depth: earlier it waits. */
export const mayLeave = ({ refund }: Order, view: View): boolean =>
  refund?.isTaken === true && refund.members.every((one) => isFinal(view, one));

/** A block holds what was sent (rule 13). */
export function refunded(order: Order, view: View): void {
  const { refund } = order;
  if (refund === null) return;
  order.refund = null;
  order.wasRefunded = true;
  for (const one of refund.members) one.taken = null;
  if (refund.part === 'whole' && MAY_BE_WHOLE.includes(order.status)) go(order, 'reimbursed', view);
}
