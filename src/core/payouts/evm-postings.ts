// How each step of a payout on Ethereum's chain is booked. What leaves in the payout's own currency is known when it is signed; what its gas
// costs is ether, known once a block holds it, and booked when that block is final. A payout in a token is charged for gas in the
// token: income there, an expense in ether.
import { type CurrencyCode, ETHER } from '../currency.ts';
import type { Entry, Posting } from '../judge/case.ts';
import { minus, negated, plus } from '../money.ts';
import { type BookedSteps, costLines, nextTime, outBy } from './booked-steps.ts';
import {
  borneEntry,
  creditRepayingReceivable,
  entry,
  foundPaid,
  held,
  type PostedPayout,
  paidAfterAllEntries,
  releaseEntry,
} from './postings.ts';

const chain = (currency: CurrencyCode): string => `asset:chain:${currency}`;
const outbound = (currency: CurrencyCode): string => `asset:chain:${currency}:outbound`;
const isEther = ({ currency }: PostedPayout): boolean => currency === ETHER;

/**
 * What leaves of the payout's currency, its gas not included unless that is the same currency.
 * @param fee what it is charged for gas
 */
export function leavingOnEvm(payout: PostedPayout, fee: bigint): bigint {
  if (isEther(payout)) return payout.reimburses === null ? plus(payout.amount, fee) : payout.amount;
  return payout.reimburses === null ? payout.amount : minus(payout.amount, fee);
}

/** Its first transaction was signed. Replacements pay the same. */
export function evmSignEntry(payout: PostedPayout, fee: bigint): Entry {
  const out = leavingOnEvm(payout, fee);
  return entry(payout, 'sign:1', 'payout_signed', [
    { account: outbound(payout.currency), amount: out },
    { account: chain(payout.currency), amount: negated(out) },
  ]);
}

/**
 * Confirmed: what left is paid out of the hold, what a token's payout is charged for gas is income, the rest is available again.
 * @param signed the fee that was signed for it
 * @param fee what it is charged
 */
export function evmCompleteEntries(payout: PostedPayout, signed: bigint, fee: bigint, owed: bigint): readonly Entry[] {
  const out = leavingOnEvm(payout, signed);
  const spent = payout.reimburses === null ? plus(payout.amount, fee) : payout.amount;
  const rest = payout.reimburses === null ? minus(payout.feeMax, fee) : 0n;
  const gas: readonly Posting[] = isEther(payout)
    ? []
    : [{ account: `income:gas:${payout.currency}`, amount: negated(minus(spent, out)) }];
  const final = entry(payout, 'final', 'payout_paid', [
    { account: held(payout), amount: spent },
    { account: outbound(payout.currency), amount: negated(out) },
    ...gas,
  ]);
  if (rest === 0n) return [final];
  const back = creditRepayingReceivable(payout, rest, owed);
  return [final, entry(payout, 'rest', 'payout_released', [{ account: held(payout), amount: rest }, ...back])];
}

/**
 * Its block is final: what the gas has really cost. A contract mostly uses less than it was given, and a reimbursement's fee was fixed when it
 * was signed (its gas price is exact): what is left of it is income, since an expense cannot be below nothing.
 * @param fee what was charged in ether and has left with the payout already; of a token's it was charged in the token
 */
export function gasEntry(payout: PostedPayout, gasPaid: bigint, fee: bigint, booked: BookedSteps): Entry {
  const more = minus(gasPaid, isEther(payout) ? fee : 0n);
  return paidGas(payout, more, booked);
}

/**
 * A final block holds a transaction of it that failed: nothing left but gas, which is the service's loss ({@link paidGas}). The hold comes back,
 * and that of a reimbursement waits for the judge of its transaction.
 */
export function evmGiveBackEntries(
  payout: PostedPayout,
  signed: bigint,
  release: { readonly owed: bigint; readonly isAgain: boolean },
): readonly Entry[] {
  const out = leavingOnEvm(payout, signed);
  return [
    entry(payout, 'failed', 'payout_failed', [
      { account: outbound(payout.currency), amount: negated(out) },
      { account: chain(payout.currency), amount: out },
    ]),
    ...(payout.reimburses === null ? [releaseEntry(payout, release.owed, release.isAgain ? 'again:release' : undefined)] : []),
  ];
}

/** The same of one that was completed before a reorganisation: the merchant gets back what it had cost. */
export function evmReturnEntry(
  payout: PostedPayout,
  {
    signed,
    fee,
    owed,
    booked,
  }: { readonly signed: bigint; readonly fee: bigint; readonly owed: bigint; readonly booked: BookedSteps },
): Entry {
  const out = leavingOnEvm(payout, signed);
  const whole = payout.reimburses === null ? plus(payout.amount, fee) : payout.amount;
  const gas: readonly Posting[] = isEther(payout)
    ? []
    : [{ account: `income:gas:${payout.currency}`, amount: minus(whole, out) }];
  const back =
    payout.reimburses === null
      ? creditRepayingReceivable(payout, whole, owed)
      : [{ account: held(payout), amount: negated(whole) }];
  const lines = [{ account: chain(payout.currency), amount: out }, ...gas, ...back];
  return nextTime(entry(payout, 'return', 'payout_returned', lines), booked);
}

/**
 * One that had failed and was given back is paid after all, as on other chains (paidAfterAllEntries). Its gas may be booked already, as a loss: then
 * what it is charged makes that up as income.
 */
export function evmPaidAfterAllEntries(
  payout: PostedPayout,
  of: {
    readonly fee: bigint;
    readonly gasPaid: bigint;
    readonly there: bigint;
    readonly booked: BookedSteps;
  },
): readonly Entry[] {
  const [hold] = paidAfterAllEntries(payout, of.fee, of.there, of.booked);
  const paid = entry(payout, foundPaid(of.booked), 'payout_paid', [
    { account: held(payout), amount: plus(payout.amount, of.fee) },
    { account: chain(payout.currency), amount: negated(payout.amount) },
    { account: `income:gas:${payout.currency}`, amount: negated(of.fee) },
  ]);
  return [hold, nextTime(paid, of.booked), paidGas(payout, of.gasPaid, of.booked)];
}

/**
 * A reimbursement that had failed is paid after all, as on other chains (borneEntry): the service bears what has arrived, and its gas.
 * @param signed the fee that was signed for it: what arrived is less by so much
 * @param isPaid false: its transaction has left the chain again
 */
export function evmBorneEntry(payout: PostedPayout, signed: bigint, isPaid: boolean, booked: BookedSteps): Entry | null {
  return borneEntry({ ...payout, amount: minus(payout.amount, signed) }, isPaid, booked);
}

/**
 * What its gas has cost, beside what has left for it: the difference to what is booked of it, without lines where there is none.
 * @param wei below zero where less was used than has left for it
 */
export function paidGas(payout: PostedPayout, wei: bigint, booked: BookedSteps): Entry {
  const accounts = { expense: `expense:network_fee:${ETHER}`, income: `income:gas:${ETHER}`, assets: chain(ETHER) };
  return nextTime(entry(payout, 'gas', 'gas_paid', costLines(accounts, wei, outBy(booked, 'gas'))), booked);
}
