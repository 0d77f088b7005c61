// A payout over Lightning as it is requested: whose invoice it is, whether it is for this amount, and its hold. One database transaction, in
// which nothing outside is called.
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import { sortableId } from '../../core/ids.ts';
import type { Invoice } from '../../core/lightning/payer.ts';
import { feeLimit, mostPayable } from '../../core/lightning/payout-fees.ts';
import { atLeastZero, formatMinor, minus, mulDivDown, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { holdEntry } from '../../core/payouts/postings.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, isInvoice, payoutAmount } from '../../core/payouts/validation.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances, readAvailable } from '../../store/ledger/ledger.ts';
import { hasPayer, type InvoiceOwner, readInvoiceOwner } from '../../store/lightning/invoice-owner.ts';
import { isPaidBesides, lockPaymentHash, type PayoutOfHash, payoutOfHash } from '../../store/lightning/payment-hashes.ts';
import { insertPayment } from '../../store/lightning/payment-rows.ts';
import { lockPayout, type PayoutRow, type RequestedPayout } from '../../store/payouts/payouts.ts';
import { readStops } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { getPayoutGuards } from '../merchants/settings.ts';
import { whyHeld } from '../payouts/held-reasons.ts';
import { refuseUnlisted, takePayout } from '../payouts/request.ts';
import { askForInvoice } from './lnurl.ts';

const { code: CURRENCY, decimals: DECIMALS, minimumMinor: MINIMUM } = PAYOUT_UNITS.lightning;
/** An invoice that expires sooner may expire before our node has found a route. */
const LEAST_LEFT_MS = 60_000;

export type LightningRequest = {
  readonly merchantId: bigint;
  /** BTC, its form was checked before; or `all`. */
  readonly amount: string;
  /** As it was sent. */
  readonly destination: string;
  /** The invoice to pay (BOLT11): the destination itself, or what it named. */
  readonly paymentRequest: string;
  /** Requested by the merchant's settings: `all` leaves this many minor units. Absent for a call of the merchant. */
  readonly automatic?: { readonly leave: bigint };
};

/** Whether this server can pay out over Lightning: it has a node, and a process that may pay with it. */
export async function canPayLightning({ ports, db, network }: Pick<Context, 'ports' | 'db' | 'network'>): Promise<boolean> {
  return ports.lightning !== null && (network === 'sandbox' || (await hasPayer(db)));
}

/**
 * Takes a payout with its hold, or refuses it and leaves nothing behind; an invoice that the merchant has a payout for gives that payout. In
 * this order: whose invoice it is, the allow-list, the minimum, whether it was used before, expiry, amount, balance.
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, invoice_already_used, invoice_expired,
 *   invoice_amount_mismatch, insufficient_balance
 */
export function requestLightningPayout(ctx: Context, request: LightningRequest): Promise<PayoutRow> {
  const invoice = ctx.ports.destinations.invoice(request.paymentRequest);
  if (invoice === null) throw refused('destination is no invoice that can be paid.');
  return ctx.db.transaction((sql) => take(ctx, sql, request, invoice), { readsFirst: true });
}

async function take(ctx: Context, sql: Sql, request: LightningRequest, invoice: Invoice): Promise<PayoutRow> {
  const { merchantId, destination } = request;
  const [, owner, guards, before, isPaid, rates] = await Promise.all([
    lockPaymentHash(sql, invoice.paymentHash),
    readInvoiceOwner(sql, { ...invoice, paymentRequest: request.paymentRequest }),
    getPayoutGuards({ db: sql, ports: ctx.ports }, { merchantId }),
    payoutOfHash(sql, invoice.paymentHash),
    isPaidBesides(sql, invoice.paymentHash),
    latestRates(sql, ctx.ports.seals, [CURRENCY], ctx.ports.clock.now()),
  ]);
  if (owner.merchantId === merchantId) throw refused('destination is an invoice of your own on this server.');
  // the hash of an invoice is known to everybody who has seen it, and anybody can sign another one with it
  if (owner.isImitation) throw refused('destination has the payment hash of another invoice, which is of this server.');
  if (owner.isOfOurNode && owner.merchantId === null)
    throw refused("destination is an invoice of this server's own Lightning node.");
  refuseUnlisted(guards.allowed, destination);
  checkMinimum('lightning', request.amount, 'amount');
  if (before !== null && request.automatic !== undefined) throw refused(ASKED_BEFORE);
  if (before !== null) return sameAmount(await payoutBefore(sql, before, merchantId), request);
  if (isPaid) throw used();
  const nowMs = ctx.ports.clock.now();
  if (owner.transactionId !== null && !owner.isOpen) throw expired('The invoice cannot be paid any more.');
  refuseExpired(invoice, nowMs);
  const [{ amount, feeMax, left }, stops] = await Promise.all([
    affordable(sql, request, invoice, owner),
    readStops(sql, merchantId),
  ]);

  const rate = rates.get(CURRENCY)?.usd;
  const usdMinor = rate === undefined ? null : usdForCryptoUp(amount, CURRENCY, rate);
  const needsApproval = isAboveLimit(usdMinor, guards.approvalAbove);
  const asked = { id: null, merchantId, currency: CURRENCY, usdMinor, needsApproval, isApproved: false };
  const heldReason = await whyHeld(ctx, sql, asked, { ...stops, guards, left });
  const payout: RequestedPayout = {
    id: sortableId('payout_', nowMs, ctx.ports.rng.bytes(10)),
    merchantId,
    method: 'lightning',
    amountText: request.amount === 'all' ? formatMinor(amount, DECIMALS) : request.amount,
    currency: CURRENCY,
    amount,
    feeMax,
    destination,
    script: null,
    source: null,
    fee: null,
    usdMinor,
    needsApproval,
    automatic: request.automatic !== undefined,
    internalTo: owner.transactionId,
    paymentHash: invoice.paymentHash,
    paymentRequest: request.paymentRequest,
    invoiceExpiresAtMs: invoice.expiresAtMs,
    createdAtMs: nowMs,
  };
  const hold = holdEntry({ ...payout, currency: CURRENCY, reimburses: null });
  const [made] = await Promise.all([
    takePayout(ctx, sql, { payout, heldReason, destination: request.paymentRequest, hold }),
    insertPayment(sql, payout.id, nowMs),
  ]);
  return made;
}

const refused = (message: string): Refusal => new Refusal('invalid_destination', { param: 'destination', message });

/** The payout that the merchant has for an invoice already. Refused: invoice_already_used */
async function payoutBefore(sql: Sql, before: PayoutOfHash, merchantId: bigint): Promise<PayoutRow> {
  if (before.merchantId === merchantId && !before.isReimbursement)
    return (await lockPayout(sql, before.id, { wait: true })) as PayoutRow;
  throw used();
}

const used = (): Refusal => new Refusal('invoice_already_used', { param: 'destination' });

const ASKED_BEFORE = 'destination cannot be paid: it gives an invoice that was asked for before.';

/**
 * The payout of an invoice that is asked for again. @throws Refusal invoice_amount_mismatch where another amount is asked for; invalid_destination where a
 * Lightning address or an LNURL gives again what is paid: whoever asked it wants another payout
 */
function sameAmount(before: PayoutRow, request: LightningRequest): PayoutRow {
  if (before.status === 'completed' && request.destination !== request.paymentRequest)
    throw refused(`destination cannot be paid: it gives an invoice that ${before.id} has paid.`);
  if (request.amount === 'all' || payoutAmount('lightning', request.amount, 'amount') === before.amount) return before;
  throw new Refusal('invoice_amount_mismatch', {
    param: 'amount',
    message: `The invoice is of ${before.id} already, which pays ${formatMinor(before.amount, DECIMALS)} ${CURRENCY}.`,
  });
}

const expired = (message: string): Refusal => new Refusal('invoice_expired', { param: 'destination', message });

/** @throws Refusal invoice_expired for one that expires before our node may have found a route */
export function refuseExpired({ expiresAtMs }: Invoice, nowMs: number): void {
  if (expiresAtMs <= nowMs) throw expired(`The invoice expired at ${new Date(expiresAtMs).toISOString()}.`);
  if (expiresAtMs - nowMs < LEAST_LEFT_MS)
    throw expired(`The invoice expires at ${new Date(expiresAtMs).toISOString()}, in less than a minute.`);
}

type Affordable = { readonly amount: bigint; readonly feeMax: bigint; readonly left: bigint };

/** What is paid, and what of the balance it leaves. Refused: invoice_amount_mismatch, insufficient_balance, payout_below_minimum */
async function affordable(sql: Sql, request: LightningRequest, invoice: Invoice, owner: InvoiceOwner): Promise<Affordable> {
  const { merchantId, automatic } = request;
  const sent = request.amount === 'all' ? null : payoutAmount('lightning', request.amount, 'amount');
  if (sent !== null) refuseOtherAmount(sent, invoice);
  const available = (await lockBalances(sql, merchantId, [CURRENCY])).get(CURRENCY)?.available ?? 0n;
  const isHere = owner.transactionId !== null;
  const spendable = atLeastZero(minus(available, automatic?.leave ?? 0n));
  const amount = sent ?? allAsked(request, invoice) ?? allOf(spendable, available, isHere);
  if (sent === null) refuseOtherAmount(amount, invoice);
  const feeMax = isHere ? 0n : feeLimit(amount);
  const left = minus(available, plus(amount, feeMax));
  // the invoice was asked for before the balance was locked: what is to be left is left also when the balance has fallen since
  if (left >= (automatic?.leave ?? 0n)) return { amount, feeMax, left };
  const most = isHere ? available : mostPayable(available);
  const covered = most >= MINIMUM ? `; at most ${formatMinor(most, DECIMALS)} ${CURRENCY} can be paid out` : '';
  throw new Refusal('insufficient_balance', {
    param: 'amount',
    message: `The available balance must cover the amount and a routing fee of up to ${formatMinor(feeMax, DECIMALS)} ${CURRENCY}${covered}.`,
  });
}

function refuseOtherAmount(amount: bigint, { amountMsat }: Invoice): void {
  if (amountMsat === null || mulDivDown(amount, MSAT, 1n) === amountMsat) return;
  const whole = mulDivDown(amountMsat, 1n, MSAT);
  const rest = minus(amountMsat, mulDivDown(whole, MSAT, 1n));
  const more = rest === 0n ? '' : ` and ${rest} thousandths of a satoshi, which no amount here can be`;
  throw new Refusal('invoice_amount_mismatch', {
    param: 'amount',
    message: `The invoice is for ${formatMinor(whole, DECIMALS)} ${LIGHTNING.balance}${more}; this payout is of ${formatMinor(amount, DECIMALS)} ${CURRENCY}.`,
  });
}

/** What was asked for as the whole balance before the balance was locked; null where nobody was asked. */
function allAsked({ destination, paymentRequest }: LightningRequest, { amountMsat }: Invoice): bigint | null {
  return destination === paymentRequest || amountMsat === null ? null : mulDivDown(amountMsat, 1n, MSAT);
}

/**
 * What a Lightning address or an LNURL is asked for: an invoice for the amount, or for what the balance holds. Not for use inside a database
 * transaction.
 * @returns BOLT11; null for a destination that is an invoice itself
 * @throws Refusal as `askForInvoice`; destination_not_allowed, payout_below_minimum, insufficient_balance
 */
export async function invoiceOfDestination(
  ctx: Context,
  { merchantId, amount, destination, automatic }: Omit<LightningRequest, 'paymentRequest'>,
): Promise<string | null> {
  if (isInvoice(destination)) return null;
  const guards = await getPayoutGuards(ctx, { merchantId });
  refuseUnlisted(guards.allowed, destination);
  checkMinimum('lightning', amount, 'amount');
  const askFor = (wanted: bigint): Promise<string> => askForInvoice(ctx, { merchantId, destination, amount: wanted });
  if (amount !== 'all') return askFor(payoutAmount('lightning', amount, 'amount'));
  const available = (await readAvailable(ctx.db, merchantId)).get(CURRENCY) ?? 0n;
  const spendable = atLeastZero(minus(available, automatic?.leave ?? 0n));
  return askFor(allOf(spendable, available, false));
}

/** The largest amount that leaves its fee in what may be spent. */
function allOf(spendable: bigint, available: bigint, isHere: boolean): bigint {
  if (available === 0n)
    throw new Refusal('insufficient_balance', { param: 'amount', message: 'The available balance is empty.' });
  const amount = isHere ? spendable : mostPayable(spendable);
  if (amount >= MINIMUM) return amount;
  throw new Refusal('payout_below_minimum', {
    param: 'amount',
    message: 'What is available, less the highest routing fee, is below the minimum of one satoshi.',
  });
}
