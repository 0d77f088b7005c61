// What a fee replacement takes over from the payments it replaces: how much of it is on time, and what their loss took from the merchant.
// Computed once per replacing transaction, in time linear in the number of payments: anybody can send a transaction with thousands of
// outputs to us, and replace it as often as they pay the fee.
import { atLeastZero, basisPointsDown, greatest, least, minus, plus, sum } from '../money.ts';
import type { Case, Payment } from './case.ts';
import { inQuotedCurrency, isBooked, isOnTime, tolerance } from './payments.ts';

export type Replacements = {
  /**
   * Records, once and for ever, whether this payment is on time or late: a replacement is on time up to the amount that was on time of what
   * it replaces.
   */
  classify(payment: Payment): void;
  /** Gives a payment that replaces booked ones what their loss took. */
  inheritLoss(payment: Payment): void;
};

/** The payments that one transaction replaces. */
type Replaced = {
  readonly payments: Payment[];
  /** How much of them was on time; null until computed. */
  onTime: bigint | null;
  /** How much of that the outputs of the replacement have used up. */
  taken: bigint;
  /** Those that were booked and lost; null until a replacement inherits from them. */
  lost: Lost | null;
};
/** `owed`: what their loss took and no replacement has inherited yet. `emptied`: how many of them, from the first, have nothing left. */
type Lost = { readonly payments: readonly Payment[]; owed: bigint; emptied: number };

/** The replacements among the payments of a case. Their state changes only through the functions that are returned. */
export function replacementsIn(it: Case): Replacements {
  const replaced = byReplacement(it.payments);
  /** What the merchant has, or has lost, of all payments in the transaction's currency. */
  let merchants: bigint | null = null;

  function inherited(group: Replaced): bigint {
    group.onTime ??= onTimeOf(it, group.payments);
    return atLeastZero(minus(group.onTime, group.taken));
  }

  return {
    classify(payment) {
      const group = replaced.get(keyOf(payment, payment.txid));
      if (it.transaction.merchantDecision === 'cancelled') payment.onTimeMinor = 0n;
      else if (isOnTime(it.transaction, payment)) payment.onTimeMinor = payment.amount;
      else payment.onTimeMinor = group === undefined ? 0n : least(payment.amount, inherited(group));
      if (group !== undefined) group.taken = plus(group.taken, payment.onTimeMinor);
      payment.classified = true;
    },
    inheritLoss(payment) {
      const group = replaced.get(keyOf(payment, payment.txid));
      if (group === undefined || isBooked(payment)) return;
      group.lost ??= lostOf(group.payments, payment);
      if (group.lost.owed === 0n) return;
      merchants ??= sum(it.payments.filter((one) => inQuotedCurrency(it, one)).map(merchantsPart));
      takeLoss(it, payment, group.lost);
      if (payment.owed === 0n || !inQuotedCurrency(it, payment)) return;
      // all of it, unless that is more than the price and its tolerance (rules 5, 17)
      const elsewhere = minus(merchants, merchantsPart(payment));
      if (plus(elsewhere, payment.amount) > plus(it.transaction.amountDue, tolerance(it.transaction))) return;
      payment.owedFee = basisPointsDown(payment.amount, it.feeBps);
      payment.owed = minus(payment.amount, payment.owedFee);
      merchants = plus(elsewhere, merchantsPart(payment));
    },
  };
}

function keyOf(payment: Payment, txid: string): string {
  return `${payment.currency} ${txid}`;
}

/** The replaced payments by the transaction that replaces them. */
function byReplacement(payments: readonly Payment[]): ReadonlyMap<string, Replaced> {
  const groups = new Map<string, Replaced>();
  for (const payment of payments) {
    if (payment.conflictTxid === null) continue;
    const key = keyOf(payment, payment.conflictTxid);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { payments: [payment], onTime: null, taken: 0n, lost: null });
    else group.payments.push(payment);
  }
  if (groups.size === 0) return groups;
  for (const payment of payments) {
    const group = payment.classified ? groups.get(keyOf(payment, payment.txid)) : undefined;
    if (group !== undefined) group.taken = plus(group.taken, payment.onTimeMinor);
  }
  return groups;
}

/**
 * How much of these payments was on time. Transactions that spend the same outpoint are a chain of replacements, so they are one payment:
 * only the largest of such a chain counts. Transactions that share no outpoint are separate payments.
 */
function onTimeOf(it: Case, replaced: readonly Payment[]): bigint {
  const amounts = new Map<string, bigint>();
  const spends = new Map<string, readonly string[]>();
  for (const payment of replaced) {
    // a payment that was replaced before it was ever judged was on time or late all the same
    const onTime = payment.classified ? payment.onTimeMinor : isOnTime(it.transaction, payment) ? payment.amount : 0n;
    amounts.set(payment.txid, plus(amounts.get(payment.txid) ?? 0n, onTime));
    spends.set(payment.txid, payment.spends);
  }
  const most = new Map<string, bigint>();
  const row = rowsOf(spends);
  for (const [txid, amount] of amounts) most.set(row(txid), greatest(most.get(row(txid)) ?? 0n, amount));
  return sum(most.values());
}

/** The chain of replacements that each transaction belongs to, named by one of its transactions (union-find over the outpoints they spend). */
function rowsOf(spends: ReadonlyMap<string, readonly string[]>): (txid: string) => string {
  const above = new Map<string, string>();
  function rowOf(txid: string): string {
    let root = txid;
    for (let next = above.get(root); next !== undefined; next = above.get(root)) root = next;
    for (let next = txid; next !== root; ) {
      const step = above.get(next) ?? root;
      above.set(next, root);
      next = step;
    }
    return root;
  }
  const spender = new Map<string, string>();
  for (const [txid, outpoints] of spends) {
    for (const outpoint of outpoints) {
      const root = rowOf(spender.get(outpoint) ?? txid);
      if (root !== rowOf(txid)) above.set(rowOf(txid), root);
      spender.set(outpoint, txid);
    }
  }
  return rowOf;
}

/** The part of a payment that the merchant has, or that its loss took from the merchant. */
function merchantsPart(payment: Payment): bigint {
  return plus(plus(payment.inAvailable, payment.owed), payment.owedFee);
}

/**
 * Those that are no longer booked; where nothing is owed for one (a waiting reimbursement had taken it whole), the first successor takes over its
 * loss.
 */
function lostOf(replaced: readonly Payment[], successor: Payment): Lost {
  const payments = replaced.filter((payment) => !isBooked(payment));
  const owed = sum(payments.map((payment) => payment.owed));
  if (owed > 0n) for (const payment of payments) if (payment.owed === 0n) passOn(payment, successor);
  return { payments, owed, emptied: 0 };
}

/**
 * A payment that replaces booked ones is one event with them: it restores what their loss took, up to its own amount. Each of them is
 * emptied before the next, so that all outputs of a replacement together go through the list once.
 */
function takeLoss(it: Case, successor: Payment, lost: Lost): void {
  for (; lost.emptied < lost.payments.length; lost.emptied++) {
    const payment = lost.payments[lost.emptied] as Payment;
    const room = minus(minus(successor.amount, successor.owed), successor.owedFee);
    const taken = least(plus(payment.owed, payment.owedFee), room);
    const owed = least(payment.owed, minus(taken, least(payment.owedFee, basisPointsDown(taken, it.feeBps))));
    const fee = minus(taken, owed);
    successor.owed = plus(successor.owed, owed);
    successor.owedFee = plus(successor.owedFee, fee);
    payment.owed = minus(payment.owed, owed);
    payment.owedFee = minus(payment.owedFee, fee);
    lost.owed = minus(lost.owed, owed);
    if (payment.owed === 0n) passOn(payment, successor);
    if (payment.owed > 0n || payment.owedFee > 0n) return;
  }
}

/** Nothing is owed for a payment any more: the payment that replaces it counts as the lost one. */
function passOn(from: Payment, to: Payment): void {
  to.wasLost ||= from.wasLost;
  from.wasLost = false;
}
