// Reimbursements of a transaction (rule 13, behaviour §3): what one takes and from where, when its coins are deep enough, what becomes of it
// when they are lost, and what its end changes. A reimbursement is paid by the machine of payouts; here it is a fact with a state.
import type { CurrencyCode } from '../currency.ts';
import { atLeastZero, formatAmount, least, minus, negated, plus, sum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { BEFORE_BOOKING, transition } from '../transaction-states.ts';
import type { Case, Payment, Refund, RefundCoin } from './case.ts';
import { inQuotedCurrency, isBooked } from './payments.ts';
import { creditRepayingReceivable, postRefund, refundAccounts } from './postings.ts';
import { isFinal, undisputed } from './required-depth.ts';
import { applyEvent } from './steps.ts';

export type RefundWanted = {
  readonly id: string;
  readonly currency: CurrencyCode;
  readonly part: Refund['part'];
  /** The smallest amount, minor units: what the customer gets of it is no dust after today's network fee. */
  readonly least: bigint;
};

function notResolvable(message: string): Refusal {
  return new Refusal('not_resolvable', { message });
}

export function refuseWhileRefunding(it: Case): void {
  if (it.refunds.length > 0) throw notResolvable('A reimbursement of this transaction is under way.');
}

/**
 * Takes a reimbursement: of `whole` everything that is booked of the currency, of `excess` what lies in suspense, each coin from where it is.
 * @throws Refusal not_resolvable, amount_below_minimum, insufficient_balance
 */
export function reimburse(it: Case, wanted: RefundWanted): Refund {
  const { currency, part } = wanted;
  const { status } = it.transaction;
  if (part === 'excess' ? BEFORE_BOOKING.has(status) : transition(status, 'reimbursement_confirmed') === null) {
    throw notResolvable(`The transaction is ${status}; ${part === 'excess' ? 'its excess' : 'it'} cannot be reimbursed.`);
  }
  refuseWhileRefunding(it);
  const coins = coinsOf(it, wanted);
  const available = sum([...coins.values()].map((coin) => coin.available));
  const suspense = sum([...coins.values()].map((coin) => coin.suspense));
  const total = plus(available, suspense);
  if (total === 0n) throw notResolvable(nothingToReturn(it, wanted));
  if (total < wanted.least) throw tooSmall(total, wanted);
  takeFromPlaces(it, wanted, { available, suspense });
  for (const payment of it.payments) {
    const coin = coins.get(payment.id);
    if (coin === undefined) continue;
    payment.inRefund = plus(payment.inRefund, plus(coin.available, coin.suspense));
    payment.inAvailable = minus(payment.inAvailable, coin.available);
    payment.inSuspense = minus(payment.inSuspense, coin.suspense);
  }
  const refund: Refund = { id: wanted.id, currency, part, total, state: 'waiting', coins };
  it.refunds.push(refund);
  it.steps.push({ kind: 'refund', id: refund.id, change: 'taken' });
  return refund;
}

function coinsOf(it: Case, { currency, part }: RefundWanted): Map<bigint, RefundCoin> {
  const coins = new Map<bigint, RefundCoin>();
  for (const payment of it.payments) {
    if (payment.currency !== currency || !isBooked(payment)) continue;
    const coin = { available: part === 'whole' ? payment.inAvailable : 0n, suspense: payment.inSuspense };
    if (coin.available > 0n || coin.suspense > 0n) coins.set(payment.id, coin);
  }
  return coins;
}

function nothingToReturn(it: Case, { currency, part }: RefundWanted): string {
  if (it.payments.some((payment) => payment.currency === currency && payment.present && !isBooked(payment)))
    return `No payment in ${currency} has the confirmations that its value needs yet.`;
  return part === 'excess'
    ? `Nothing of this transaction lies in suspense in ${currency}.`
    : `Nothing of this transaction is here in ${currency}.`;
}

function tooSmall(total: bigint, { currency, least: lowest }: RefundWanted): Refusal {
  return new Refusal('amount_below_minimum', {
    message: `${formatAmount(total, currency)} ${currency} cannot be sent back: with the network fee of today at least ${formatAmount(lowest, currency)} are needed.`,
  });
}

type Places = { readonly available: bigint; readonly suspense: bigint };

function takeFromPlaces(it: Case, { id, currency }: RefundWanted, { available, suspense }: Places): void {
  const account = refundAccounts(it, currency);
  if (available > 0n) {
    const balance = account.balance();
    if (balance.available < available) {
      const message = `The available balance must cover what was credited, ${formatAmount(available, currency)} ${currency}.`;
      throw new Refusal('insufficient_balance', { message });
    }
    balance.available = minus(balance.available, available);
  }
  postRefund(it, { id, kind: 'reimbursement_hold' }, [
    { account: account.available, amount: available },
    { account: account.suspense, amount: suspense },
    { account: account.refundPayable, amount: negated(plus(available, suspense)) },
  ]);
}

/** The reimbursement's coins have their final depth: it may leave. */
export function releaseFinal(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'waiting');
  if (refund === undefined) return false;
  const coins = it.payments.filter((payment) => refund.coins.has(payment.id));
  if (!coins.every((payment) => isFinal(it, payment)) || undisputed(it, coins, isFinal).length < coins.length) return false;
  refund.state = 'ready';
  it.steps.push({ kind: 'refund', id: refund.id, change: 'ready' });
  return true;
}

/** One that is not committed yet ends as failed when a coin of it is lost; the others go back to where they were. */
export function endWithLostCoins(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'waiting' || one.state === 'ready');
  if (refund === undefined) return false;
  const coins = it.payments.filter((payment) => refund.coins.has(payment.id));
  if (coins.every(isBooked)) return false;
  giveBack(it, refund, (payment) => payment.inRefund);
  finish(it, refund, 'lost');
  return true;
}

/** Takes note of reimbursements that have ended: what was sent back, or what has to lie somewhere else again. */
export function noteEnded(it: Case): boolean {
  const refund = it.refunds.find((one) => one.state === 'completed' || one.state === 'failed');
  if (refund === undefined) return false;
  if (refund.state === 'failed') giveBack(it, refund, (_payment, coin) => plus(coin.available, coin.suspense));
  else {
    for (const [payment, coin] of coinsIn(it, refund)) {
      const units = plus(coin.available, coin.suspense);
      payment.inRefund = minus(payment.inRefund, units);
      payment.sentBack = plus(payment.sentBack, units);
    }
    if (isWhole(it, refund)) applyEvent(it, 'reimbursement_confirmed');
  }
  finish(it, refund, 'noted');
  return true;
}

function finish(it: Case, refund: Refund, change: 'lost' | 'noted'): void {
  it.refunds.splice(it.refunds.indexOf(refund), 1);
  it.steps.push({ kind: 'refund', id: refund.id, change });
}

function coinsIn(it: Case, refund: Refund): (readonly [Payment, RefundCoin])[] {
  return it.payments.flatMap((payment) => {
    const coin = refund.coins.get(payment.id);
    return coin === undefined ? [] : [[payment, coin] as const];
  });
}

/** Rule 13: the transaction's own coins have gone back, or coins of another currency where there are none of its own. */
function isWhole(it: Case, { part, currency }: Refund): boolean {
  if (part === 'excess') return false;
  if (currency === it.transaction.currency) return true;
  return it.payments.every((payment) => !inQuotedCurrency(it, payment) || plus(payment.inAvailable, payment.inSuspense) === 0n);
}

/**
 * Takes units of a reimbursement that did not arrive out of `refund_payable`. They go back to where they came from; of a coin whose loss
 * the merchant has paid meanwhile, to the merchant; and where the transaction was reimbursed already, to suspense.
 */
function giveBack(it: Case, refund: Refund, unitsOf: (payment: Payment, coin: RefundCoin) => bigint): void {
  const isReimbursed = it.transaction.status === 'reimbursed';
  let merchants = 0n;
  let suspended = 0n;
  for (const [payment, coin] of coinsIn(it, refund)) {
    const units = unitsOf(payment, coin);
    const waiting = least(payment.inRefund, units);
    payment.inRefund = minus(payment.inRefund, waiting);
    payment.sentBack = minus(payment.sentBack, minus(units, waiting));
    if (!isBooked(payment)) {
      merchants = plus(merchants, units);
      payment.owed = atLeastZero(minus(payment.owed, units));
      continue;
    }
    const credited = isReimbursed ? 0n : least(coin.available, units);
    merchants = plus(merchants, credited);
    suspended = plus(suspended, minus(units, credited));
    payment.inAvailable = plus(payment.inAvailable, credited);
    payment.inSuspense = plus(payment.inSuspense, minus(units, credited));
  }
  const total = plus(merchants, suspended);
  if (total === 0n) return;
  const account = refundAccounts(it, refund.currency);
  postRefund(it, { id: refund.id, kind: 'reimbursement_released' }, [
    { account: account.refundPayable, amount: total },
    ...creditRepayingReceivable(it, refund.currency, merchants),
    { account: account.suspense, amount: negated(suspended) },
  ]);
}
