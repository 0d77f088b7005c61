// What becomes of the units of a reimbursement that did not arrive: whose they are again, also where their payment was lost meanwhile, or replaced
// by others.
import { atLeastZero, least, minus, negated, plus, sum } from '../money.ts';
import type { Case, Payment, Refund, RefundShare } from './case.ts';
import { isBooked } from './payments.ts';
import { creditRepayingReceivable, postRefund, refundAccounts } from './postings.ts';

/** What a reimbursement took of one payment, from wherever. Minor units. */
export function unitsOf(share: RefundShare | undefined): bigint {
  return share === undefined ? 0n : plus(share.available, share.suspense);
}

/** The payments of a reimbursement, each with what was taken of it. */
export function sharesIn(it: Case, refund: Refund): (readonly [Payment, RefundShare])[] {
  return it.payments.flatMap((payment) => {
    const share = refund.shares.get(payment.id);
    return share === undefined ? [] : [[payment, share] as const];
  });
}

/**
 * What lies in `refund_payable` of a payment and belongs to no other reimbursement: an earlier one that was displaced may end while another is
 * open, and its own units are those that were sent back.
 */
function unclaimed(it: Case, refund: Refund, payment: Payment): bigint {
  const others = it.refunds.filter((other) => other !== refund && other.isHeld && other.state !== 'failed');
  const claimed = sum(others.map((other) => unitsOf(other.shares.get(payment.id))));
  return atLeastZero(minus(payment.inRefund, claimed));
}

/**
 * Takes units of a reimbursement that did not arrive out of `refund_payable`. They go back to where they came from; of a payment whose loss
 * the merchant has paid meanwhile, to the merchant; and where the transaction was reimbursed already, to suspense.
 */
export function giveBack(it: Case, refund: Refund, takenOf: (payment: Payment, share: RefundShare) => bigint): void {
  const isReimbursed = it.transaction.status === 'reimbursed';
  const byTxid = Map.groupBy(it.payments, keyOf);
  let merchants = 0n;
  let suspended = 0n;
  for (const [payment, share] of sharesIn(it, refund)) {
    const units = takenOf(payment, share);
    const waiting = least(unclaimed(it, refund, payment), units);
    payment.inRefund = minus(payment.inRefund, waiting);
    payment.sentBack = minus(payment.sentBack, minus(units, waiting));
    const credited = isReimbursed ? 0n : least(share.available, units);
    if (isBooked(payment)) {
      merchants = plus(merchants, credited);
      suspended = plus(suspended, minus(units, credited));
      payment.inAvailable = plus(payment.inAvailable, credited);
      payment.inSuspense = plus(payment.inSuspense, minus(units, credited));
      continue;
    }
    const owed = least(payment.owed, units);
    payment.owed = minus(payment.owed, owed);
    const kept = leaveToSuccessors(payment, { units: minus(units, owed), suspended: minus(units, credited) }, byTxid);
    merchants = plus(merchants, minus(units, kept));
    suspended = plus(suspended, kept);
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

const keyOf = ({ currency, txid }: Payment): string => `${currency} ${txid}`;

/**
 * A payment that was lost and replaced owes no more, because what replaces it restores the loss to the merchant, with what the customer was to get
 * back. What gets to the merchant here is then not to be restored once more; what was restored already lies in suspense instead: it is the
 * customer's, until the merchant decides.
 * @param of `units` of it, at most `suspended` did not come from the merchant
 * @returns how much goes to suspense
 */
function leaveToSuccessors(
  lost: Payment,
  { units, suspended }: { readonly units: bigint; readonly suspended: bigint },
  byTxid: ReadonlyMap<string, readonly Payment[]>,
): bigint {
  let rest = units;
  let kept = 0n;
  let replaced: readonly Payment[] = [lost];
  // what has replaced a payment may itself be lost, and replaced: no transaction comes twice in such a row
  for (const passed = new Set([lost.txid]); rest > 0n && replaced.length > 0; ) {
    const txids = new Set(replaced.flatMap(({ conflictTxid }) => (conflictTxid === null ? [] : [conflictTxid])));
    replaced = [...txids].filter((txid) => !passed.has(txid)).flatMap((txid) => byTxid.get(keyOf({ ...lost, txid })) ?? []);
    for (const txid of txids) passed.add(txid);
    for (const payment of replaced) {
      if (!isBooked(payment)) {
        const part = least(rest, payment.owed);
        rest = minus(rest, part);
        payment.owed = minus(payment.owed, part);
        continue;
      }
      const restored = least(payment.inAvailable, minus(payment.credited, payment.fee));
      const part = least(least(rest, minus(suspended, kept)), restored);
      rest = minus(rest, part);
      kept = plus(kept, part);
      payment.inAvailable = minus(payment.inAvailable, part);
      payment.inSuspense = plus(payment.inSuspense, part);
      payment.credited = minus(payment.credited, part);
      payment.suspended = plus(payment.suspended, part);
    }
  }
  return kept;
}
