// A reimbursement over Lightning as it is asked for: what it pays, and what its invoice leaves for the route. One payment, of one invoice; the
// rest is the machine of payouts over Lightning.
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import type { Invoice } from '../../core/lightning/payer.ts';
import { LEAST_REFUND, refundRange } from '../../core/lightning/payout-fees.ts';
import { formatAmount, minus, mulDivDown } from '../../core/money.ts';
import { checkDestination, isInvoice } from '../../core/payouts/validation.ts';
import { Refusal } from '../../core/refusal.ts';
import { readInvoiceOwner } from '../../store/lightning/invoice-owner.ts';
import { isPaidBesides, lockPaymentHash, payoutOfHash } from '../../store/lightning/payment-hashes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import type { RefundRail } from '../payouts/refund-rail.ts';
import { askForInvoice, type WantedInvoice } from './lnurl.ts';
import { canPayLightning, refuseExpired } from './payout-request.ts';

const { code: METHOD, balance: CURRENCY } = LIGHTNING;

/**
 * What a Lightning address or an LNURL gives for what would be paid back now. Not for use inside a database transaction.
 * @param of.whole what the reimbursement would take, in satoshis; refused where it would be
 * @returns BOLT11; null for a destination that is an invoice itself
 * @throws Refusal invalid_destination, lightning_unavailable, what `whole` refuses
 */
export async function invoiceOfRefund(
  ctx: Context,
  { merchantId, destination }: Pick<WantedInvoice, 'merchantId' | 'destination'>,
  of: { whole(least: bigint): Promise<bigint> },
): Promise<string | null> {
  checkDestination('lightning', destination, ctx.ports.destinations);
  if (isInvoice(destination)) return null;
  const total = await of.whole(LEAST_REFUND);
  if (!(await canPayLightning(ctx))) throw noPayer();
  return askForInvoice(ctx, { merchantId, destination, amount: refundRange(total).most });
}

/**
 * Pays an invoice of somebody who is not here.
 * @param paymentRequest BOLT11
 * @throws Refusal invalid_destination; for what was taken: lightning_unavailable, invoice_already_used, invoice_expired, invoice_amount_mismatch
 */
export async function refundByInvoice(ctx: Context, paymentRequest: string): Promise<RefundRail> {
  checkDestination('lightning', paymentRequest, ctx.ports.destinations);
  const invoice = ctx.ports.destinations.invoice(paymentRequest);
  const refused = (message: string) => new Refusal('invalid_destination', { param: 'destination', message });
  if (invoice === null) throw refused('destination is no invoice that can be paid.');
  const { paymentHash, expiresAtMs } = invoice;
  const owner = await readInvoiceOwner(ctx.db, { ...invoice, paymentRequest });
  if (owner.transactionId !== null || owner.isOfOurNode)
    throw refused('destination is an invoice of this server: a reimbursement goes back to a customer.');
  const canPay = await canPayLightning(ctx);
  const isUsedIn = async (sql: Sql): Promise<boolean> =>
    (await payoutOfHash(sql, paymentHash)) !== null || (await isPaidBesides(sql, paymentHash));
  const isUsed = await isUsedIn(ctx.db);
  const used = () => new Refusal('invoice_already_used', { param: 'destination' });
  return {
    method: METHOD,
    least: LEAST_REFUND,
    refuse(total) {
      if (!canPay) throw noPayer();
      if (isUsed) throw used();
      refuseExpired(invoice, ctx.ports.clock.now());
      paidBack(invoice, total);
    },
    async terms(sql, total) {
      await lockPaymentHash(sql, paymentHash);
      if (await isUsedIn(sql)) throw used();
      const feeMax = minus(total, paidBack(invoice, total));
      return { feeMax, script: null, invoice: { paymentRequest, paymentHash, expiresAtMs } };
    },
  };
}

/** What the customer gets of a whole: what his invoice says, else what leaves the highest fee. Satoshis. Refused: invoice_amount_mismatch */
function paidBack({ amountMsat }: Invoice, total: bigint): bigint {
  const { least, most } = refundRange(total);
  if (amountMsat === null) return most;
  const amount = mulDivDown(amountMsat, 1n, MSAT);
  if (mulDivDown(amount, MSAT, 1n) === amountMsat && amount >= least && amount <= most) return amount;
  const text = (sat: bigint): string => formatAmount(sat, CURRENCY);
  throw new Refusal('invoice_amount_mismatch', {
    param: 'destination',
    message: `Of ${text(total)} ${CURRENCY} an invoice for ${text(most)} can be paid back, which leaves the highest routing fee, or for as little as ${text(least)}; or one without an amount.`,
  });
}

const noPayer = (): Refusal =>
  new Refusal('lightning_unavailable', {
    message: 'What came over Lightning cannot be sent back now: this server has no Lightning node to pay with.',
  });
