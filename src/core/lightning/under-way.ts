// How much of our channels one merchant may have on its way at once. A recipient can hold a payment for days without taking or returning it, and
// each that hangs takes an HTLC slot and its amount out of what others can send.
import { minus, plus } from '../money.ts';

/** How many payouts of a merchant are on their way over Lightning at once, and how many of its reimbursements. */
export const MOST_UNDER_WAY = 10;

/**
 * Whether one more would leave others less than it takes together with what its merchant has on its way already; one alone never does. Satoshis.
 * @param spendable what our channels can send besides
 */
export function takesTooMuch(wanted: bigint, of: { readonly underWay: bigint; readonly spendable: bigint }): boolean {
  if (of.underWay === 0n) return false;
  return minus(of.spendable, wanted) < plus(of.underWay, wanted);
}

/**
 * Whether one more would leave others fewer slots for HTLCs than its merchant takes then; one alone never does. Many merchants whose recipients all hold
 * what they are paid share the slots with one that is not there yet.
 * @param underWay how many of its merchant are on their way
 * @param freeSlots of our channels now
 */
export const takesTooManySlots = (underWay: number, freeSlots: number): boolean => underWay > 0 && freeSlots < underWay + 2;
