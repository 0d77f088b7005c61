// Reimbursements of a transaction (rule 13, behaviour §3): what one takes and from where, when its payments are deep enough, what becomes of it
// when they are lost, and what its end changes. A reimbursement is paid by the machine of payouts; here it is a fact with a state.
import type { PaymentMethod } from '../currency.ts';
import { formatAmount, minus, negated, plus, sum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { BEFORE_BOOKING, transition } from '../transaction-states.ts';
import type { Case, Payment, Refund, RefundShare } from './case.ts';
import { inQuotedCurrency, isBooked, isLive, isOfBlock, isOverdue, isUnconfirmed } from './payments.ts';
import { postRefund, refundAccounts } from './postings.ts';
import { giveBack, sharesIn, unitsOf } from './refund-return.ts';
import { isFinal, undisputed } from './required-depth.ts';
import { applyEvent } from './steps.ts';

export type RefundWanted = {
  readonly id: string;
  readonly currency: PaymentMethod;
  readonly part: Refund['part'];
  /** The smallest amount, minor units: what the customer gets of it is no dust after today's network fee. */
  readonly least: bigint;
};

function notResolvable(message: string): Refusal {
  return new Refusal('not_resolvable', { message });
}

/** Refuses (409 `not_resolvable`) while a reimbursement of the transaction is open: its payments are already on their way out. */
export function refuseWhileRefunding(it: Case): void {
  if (it.refunds.length > 0) throw notResolvable('A reimbursement of this transaction is under way.');
}

/**
 * Takes a reimbursement: of `whole` everything that is booked of the currency, of `excess` what lies in suspense, each payment from where it lies.
 * With payments that wait for their booking it holds all once the last one is booked.
 * @throws Refusal not_resolvable, amount_below_minimum, insufficient_balance
 */
export function reimburse(it: Case, wanted: RefundWanted): Refund {
  const { currency, part } = wanted;
  const { status } = it.transaction;
  if (part === 'excess' ? BEFORE_BOOKING.has(status) : transition(status, 'reimbursement_confirmed') === null) {
    throw notResolvable(`The transaction is ${status}; ${part === 'excess' ? 'its excess' : 'it'} cannot be reimbursed.`);
  }
  refuseWhileRefunding(it);
  const booked = bookedShares(it, wanted);
  const waiting = waitingShares(it, wanted, booked.size > 0);
  const isHeld = waiting.size === 0;
  const shares = new Map([...booked, ...waiting]);
  const total = sum([...shares.values()].map(unitsOf));
  if (total === 0n) throw notResolvable(nothingToReturn(wanted));
  if (total < wanted.least) throw tooSmall(total, wanted);
  refuseUncovered(it, { currency, shares });
  const refund: Refund = { id: wanted.id, currency, part, total, state: 'waiting', isHeld, shares };
  if (isHeld) hold(it, refund);
  it.refunds.push(refund);
  it.steps.push({ kind: 'refund', id: refund.id, change: 'taken' });
  return refund;
}

/** What a block itself has paid goes back to no customer: none has sent it. */
function isReturnable(payment: Payment, currency: PaymentMethod): boolean {
  return payment.currency === currency && !isOfBlock(payment);
}

function bookedShares(it: Case, { currency, part }: RefundWanted): Map<bigint, RefundShare> {
  const shares = new Map<bigint, RefundShare>();
  for (const payment of it.payments) {
    if (!isReturnable(payment, currency) || !isBooked(payment)) continue;
    const share = { available: part === 'whole' ? payment.inAvailable : 0n, suspense: payment.inSuspense };
    if (share.available > 0n || share.suspense > 0n) shares.set(payment.id, share);
  }
  return shares;
}

/**
 * The payments that wait for their booking; all of them will lie in suspense. Beside booked ones those of an undecided transaction belong to its
 * whole, later they are extra. Unconfirmed ones are meant only where there is nothing else, and for a limited time, since everybody can send one.
 */
function waitingShares(it: Case, { currency, part }: RefundWanted, hasBooked: boolean): Map<bigint, RefundShare> {
  const isUndecided = it.transaction.status === 'review' || it.transaction.status === 'declined';
  if (hasBooked && (part === 'excess' || !isUndecided)) return new Map();
  const waiting = it.payments.filter(
    (payment) => isReturnable(payment, currency) && payment.present && isLive(payment) && !isBooked(payment),
  );
  const confirming = waiting.filter((payment) => !isUnconfirmed(payment));
  if (isUndecided && confirming.some((payment) => payment.owed > 0n))
    throw notResolvable('A payment of this transaction that was lost is back, and waits for its confirmations.');
  const meant = hasBooked || confirming.length > 0 ? confirming : waiting.filter((payment) => !isOverdue(it, payment));
  // what restores an earlier loss is the merchant's
  const free = meant.filter((payment) => payment.owed === 0n);
  return new Map(free.map((payment) => [payment.id, { available: 0n, suspense: payment.amount }]));
}

function nothingToReturn({ currency, part }: RefundWanted): string {
  return part === 'excess'
    ? `Nothing of this transaction lies in suspense in ${currency}.`
    : `Nothing of this transaction is here in ${currency}, or it has waited for its first confirmation for too long.`;
}

function tooSmall(total: bigint, { currency, least: lowest }: RefundWanted): Refusal {
  return new Refusal('amount_below_minimum', {
    message: `${formatAmount(total, currency)} ${currency} cannot be sent back: with the network fee of today at least ${formatAmount(lowest, currency)} are needed.`,
  });
}

type Taken = Pick<Refund, 'currency' | 'shares'>;

/** Whether the available balance covers what was credited. */
function isCovered(it: Case, { currency, shares }: Taken): boolean {
  const available = availableOf(shares);
  return available === 0n || refundAccounts(it, currency).balance().available >= available;
}

function availableOf(shares: Taken['shares']): bigint {
  return sum([...shares.values()].map((share) => share.available));
}

function refuseUncovered(it: Case, taken: Taken): void {
  if (isCovered(it, taken)) return;
  const credited = formatAmount(availableOf(taken.shares), taken.currency);
  throw new Refusal('insufficient_balance', {
    message: `The available balance must cover what was credited, ${credited} ${taken.currency}.`,
  });
}

/** Takes every payment from where it lies. */
function hold(it: Case, { id, currency, total, shares }: Refund): void {
  const account = refundAccounts(it, currency);
  const available = availableOf(shares);
  if (available > 0n) {
    const balance = account.balance();
    balance.available = minus(balance.available, available);
  }
  postRefund(it, { id, kind: 'reimbursement_hold' }, [
    { account: account.available, amount: available },
    { account: account.suspense, amount: minus(total, available) },
    { account: account.refundPayable, amount: negated(total) },
  ]);
  for (const payment of it.payments) {
    const share = shares.get(payment.id);
    if (share === undefined) continue;
    payment.inRefund = plus(payment.inRefund, unitsOf(share));
    payment.inAvailable = minus(payment.inAvailable, share.available);
    payment.inSuspense = minus(payment.inSuspense, share.suspense);
  }
}

/**
 * One that was taken before all its payments were booked holds them as soon as all are. It ends where they are no longer where it was to take
 * them from.
 */
export function holdBooked(it: Case): boolean {
  const refund = it.refunds.find((one) => !one.isHeld);
  if (refund === undefined) return false;
  const shares = sharesIn(it, refund);
  if (!shares.every(([payment]) => isBooked(payment))) return false;
  const areThere = shares.every(
    ([payment, share]) => payment.inSuspense === share.suspense && payment.inAvailable >= share.available,
  );
  if (!areThere || !isCovered(it, refund)) return finish(it, refund, 'lost');
  hold(it, refund);
  refund.isHeld = true;
  return true;
}

/** The reimbursement's payments have their final depth: it may leave. */
export function releaseFinal(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'waiting');
  if (refund === undefined || !refund.isHeld) return false;
  const payments = it.payments.filter((payment) => refund.shares.has(payment.id));
  if (!payments.every((payment) => isFinal(it, payment)) || undisputed(it, payments, isFinal).length < payments.length)
    return false;
  refund.state = 'ready';
  it.steps.push({ kind: 'refund', id: refund.id, change: 'ready' });
  return true;
}

/** One that is not committed yet ends as failed when a payment of it is lost; the others go back to where they were. */
export function endWithLostPayments(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'waiting' || one.state === 'ready');
  if (refund === undefined) return false;
  const payments = it.payments.filter((payment) => refund.shares.has(payment.id));
  if (payments.every((payment) => (refund.isHeld ? isBooked(payment) : payment.present))) return false;
  giveBack(it, refund, (payment) => payment.inRefund);
  return finish(it, refund, 'lost');
}

/**
 * One that waits for an unconfirmed payment ends when that has waited too long, or when other payments in suspense are final: a stranger's
 * payment that nobody mines must hold up neither them nor the merchant's decision.
 */
export function endUnconfirmed(it: Case): boolean {
  const refund = it.refunds.find((one) => !one.isHeld);
  if (refund === undefined) return false;
  const unconfirmed = sharesIn(it, refund).filter(([payment]) => isUnconfirmed(payment));
  if (unconfirmed.length === 0) return false;
  const areOthersFinal = it.payments.some(
    (payment) => payment.currency === refund.currency && payment.inSuspense > 0n && isFinal(it, payment),
  );
  return (areOthersFinal || unconfirmed.some(([payment]) => isOverdue(it, payment))) && finish(it, refund, 'lost');
}

/** Takes note of reimbursements that have ended: what was sent back, or what has to lie somewhere else again. */
export function noteEnded(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'completed' || one.state === 'failed');
  if (refund === undefined) return false;
  // one that a person has decided may have taken nothing yet
  if (refund.state === 'failed' && refund.isHeld) giveBack(it, refund, (_payment, share) => unitsOf(share));
  else if (refund.state === 'completed') {
    for (const [payment, share] of sharesIn(it, refund)) {
      const units = unitsOf(share);
      payment.inRefund = minus(payment.inRefund, units);
      payment.sentBack = plus(payment.sentBack, units);
    }
    if (isWhole(it, refund)) applyEvent(it, 'reimbursement_confirmed');
  }
  return finish(it, refund, 'noted');
}

function finish(it: Case, refund: Refund, change: 'lost' | 'noted'): true {
  it.refunds.splice(it.refunds.indexOf(refund), 1);
  it.steps.push({ kind: 'refund', id: refund.id, change });
  return true;
}

/**
 * Rule 13: the transaction's own payments have gone back, or payments of another currency where there are none of its own. One of its own that
 * is not booked yet, or left only a moment ago, is there.
 */
function isWhole(it: Case, { part, currency }: Refund): boolean {
  if (part === 'excess') return false;
  if (currency === it.transaction.currency) return true;
  const own = it.payments.filter((payment) => inQuotedCurrency(it, payment));
  return own.every((payment) =>
    isBooked(payment) ? plus(payment.inAvailable, payment.inSuspense) === 0n : !payment.present && !isLive(payment),
  );
}
