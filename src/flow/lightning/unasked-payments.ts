// Where our Lightning node and the books differ for good, an operator says so: what the node has paid and no payout here has asked for is booked, and
// what a payout had paid, or a customer, and the node has forgotten is let be.
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import { lightningOutflowEntry, unknownReceiptEntry } from '../../core/lightning/postings.ts';
import { formatAmount, mulDivDown, mulDivUp } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { setReceiptForgotten } from '../../store/lightning/comparison.ts';
import { lockUnasked, setAcknowledged, setForgotten } from '../../store/lightning/sent-payments.ts';
import { acknowledgeUnknown } from '../../store/lightning/unknown-invoices.ts';
import type { Context } from '../context.ts';

/**
 * Books one as lost.
 * @returns satoshis, fee included; null when there is no such payment
 * @throws Refusal not_resolvable while it is under way, or when the loss is not accepted
 */
export function bookUnasked(
  ctx: Context,
  { paymentHash, acceptsLoss }: { readonly paymentHash: string; readonly acceptsLoss: boolean },
): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    const found = await lockUnasked(sql, paymentHash);
    if (found === null) return null;
    const refused = (what: string) => new Refusal('not_resolvable', { message: `Payment ${paymentHash} ${what}.` });
    if (found.isUnderWay) throw refused('is under way: wait until the node has ended it');
    const lost = mulDivUp(found.msat, 1n, MSAT);
    if (!acceptsLoss)
      throw refused(
        `has taken ${formatAmount(lost, LIGHTNING.code)} ${LIGHTNING.balance} for nobody here (--accept-loss books that as lost)`,
      );
    const atMs = ctx.ports.clock.now();
    await postEntries(sql, [{ entry: lightningOutflowEntry(paymentHash, lost), transactionId: null, atMs }]);
    await setAcknowledged(sql, paymentHash, atMs);
    return lost;
  });
}

/**
 * Lets a payment be that a payout had paid and that the node, restored from an older state, does not list: its preimage is here, so it was made,
 * and nothing is booked.
 * @returns the payout; null when there is no such payment
 */
export function acceptForgotten(ctx: Context, paymentHash: string): Promise<string | null> {
  return setForgotten(ctx.db, paymentHash, ctx.ports.clock.now());
}

/**
 * Lets a customer's payment be that the node announced and, restored from an older state or replaced before its list was compared, does not list: the
 * node had given the preimage for it, so it was made, and nothing is booked.
 * @returns its transaction; null when there is no such payment
 */
export function acceptForgottenReceipt(ctx: Context, paymentHash: string): Promise<string | null> {
  return setReceiptForgotten(ctx.db, paymentHash);
}

/**
 * Books what the node was paid for an invoice that this database does not know, made while it was away, as its operator's: he says whose it is, and
 * gives it back or makes it good himself.
 * @returns satoshis; null when there is no such payment
 */
export function bookUnknownReceipt(ctx: Context, paymentHash: string): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    const atMs = ctx.ports.clock.now();
    const paidMsat = await acknowledgeUnknown(sql, paymentHash, atMs);
    if (paidMsat === null) return null;
    const amount = mulDivDown(paidMsat, 1n, MSAT);
    if (amount > 0n) await postEntries(sql, [{ entry: unknownReceiptEntry(paymentHash, amount), transactionId: null, atMs }]);
    return amount;
  });
}
