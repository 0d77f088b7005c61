// The operations on a transaction, in the order of its life: create, take note of what the chain brings, cancel, resolve. Each locks, lets
// core decide, and writes, in one database transaction; none of them calls anything outside while it is open.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { PaymentMethod } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import {
  accept,
  acceptExcess,
  cancel,
  decline,
  refuseAccept,
  refuseCancel,
  refuseDecline,
  refuseExcess,
} from '../../core/judge/resolve.ts';
import { WINDOW_MS } from '../../core/judge/times.ts';
import { paymentUri } from '../../core/payment-uri.ts';
import { formatRate, type Rate } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { insertInvoiced } from '../../store/lightning/invoices.ts';
import type { NewTransaction } from '../../store/transactions/transactions.ts';
import type { Context } from '../context.ts';
import { closeInvoiceOf, type PreparedInvoice, prepareInvoice } from '../lightning/invoices.ts';
import { decide } from './decide.ts';
import { type Quote, quote, quoteNow } from './quote.ts';

/** A row that is refused this often at an unchanged price is refused for another reason. */
const MAX_UNCHANGED = 3;

export type CreatedTransaction = {
  readonly transactionId: string;
  readonly address: string;
  /** What the QR code encodes: a BIP 321 URI with the amount. */
  readonly uri: string;
  readonly currency: PaymentMethod;
  readonly amountDue: bigint;
  readonly usdMinor: bigint;
  readonly rate: Rate;
  readonly expiresAtMs: number;
  readonly status: 'started';
};

export type TransactionAsked = {
  readonly merchantId: bigint;
  /** Cents; the amount's form was checked before. */
  readonly usdMinor: bigint;
  readonly method: PaymentMethod;
  readonly label: string | null;
  readonly email: string | null;
};

/**
 * Creates a transaction with its own address, or over Lightning with its own invoice (rule 1).
 * @param prepared the invoice: inside an open database transaction it must have been made before
 * @throws Refusal as {@link quote} and {@link prepareInvoice} do
 */
export async function createTransaction(
  ctx: Context,
  input: TransactionAsked,
  prepared: PreparedInvoice | null = null,
): Promise<CreatedTransaction> {
  const { method } = input;
  if (method === LIGHTNING.code) return createInvoiced(ctx, input, prepared ?? (await preparedNow(ctx, input)));
  let priced = await quote(ctx, method, input.usdMinor);
  const next = await ctx.batches.nextAddress(priced.currency);
  if (next === null)
    throw new Refusal('currency_unavailable', { message: `No account key of ${priced.currency} is known; see "bursar keys".` });
  const nowMs = ctx.ports.clock.now();
  const transactionId = sortableId('txn_', nowMs, ctx.ports.rng.bytes(10));
  const rowOf = ({ currency, amountDue, rate }: Quote): NewTransaction => ({
    id: transactionId,
    merchantId: input.merchantId,
    currency,
    usdMinor: input.usdMinor,
    amountDue,
    rate: formatRate(rate),
    label: input.label,
    email: input.email,
    address: next.address,
    script: next.script,
    addressIndex: next.index,
    createdAtMs: nowMs,
    windowEndsAtMs: nowMs + WINDOW_MS,
  });
  for (let unchanged = 0; !(await ctx.batches.insert(rowOf(priced))); ) {
    // the price or the node has changed since it was read
    const now = await quoteNow(ctx, method, input.usdMinor);
    unchanged = now.rate === priced.rate ? unchanged + 1 : 0;
    if (unchanged === MAX_UNCHANGED)
      throw new Error(`nothing was written for merchant ${input.merchantId}: does it have settings?`);
    priced = now;
  }
  return {
    transactionId,
    address: next.address,
    uri: paymentUri(priced.currency, next.address, priced.amountDue, ctx),
    currency: priced.currency,
    amountDue: priced.amountDue,
    usdMinor: input.usdMinor,
    rate: priced.rate,
    expiresAtMs: nowMs + WINDOW_MS,
    status: 'started',
  };
}

/** The node is asked, which nobody may do while a database transaction is open. */
function preparedNow(ctx: Context, asked: TransactionAsked): Promise<PreparedInvoice> {
  if (ctx.afterwards !== undefined) throw new Error('an invoice must be made before the database transaction is opened');
  return prepareInvoice(ctx, { ...asked, call: null });
}

async function createInvoiced(
  ctx: Context,
  { usdMinor, label, email }: TransactionAsked,
  { reservation, paymentRequest }: PreparedInvoice,
): Promise<CreatedTransaction> {
  const { paymentHash, transactionId, amountDue, rate, windowEndsAtMs } = reservation;
  const isWritten = await insertInvoiced(ctx.db, { paymentHash, paymentRequest, label, email });
  // nobody has seen the invoice: the worker has given it up
  if (!isWritten) throw new Refusal('lightning_unavailable', { message: 'The Lightning node took too long: try again.' });
  return {
    transactionId,
    address: paymentRequest,
    uri: paymentUri(LIGHTNING.code, paymentRequest, amountDue, ctx),
    currency: LIGHTNING.code,
    amountDue,
    usdMinor,
    rate,
    expiresAtMs: windowEndsAtMs,
    status: 'started',
  };
}

/** Lets the judge decide what is due for one transaction (rules 2 to 11, 15 to 19, 21 to 24). False when there is no such transaction. */
export async function reconsider(ctx: Context, transactionId: string): Promise<boolean> {
  return (await decide(ctx, transactionId)) !== null;
}

/** The same, however many payments it has, for a process that does nothing else. Returns the status afterwards, or null. */
export async function reconsiderLarge(ctx: Context, transactionId: string): Promise<TransactionStatus | null> {
  return (await decide(ctx, transactionId, { mostPayments: null }))?.status ?? null;
}

/**
 * Rule 20. A second cancel gets the same answer. The invoice of one over Lightning is cancelled at the node first: inside an open database
 * transaction that must have been done before ({@link closeInvoiceOf}).
 * @throws Refusal transaction_not_found, transaction_not_cancellable, lightning_unavailable
 */
export async function cancelTransaction(
  ctx: Context,
  input: { readonly merchantId: bigint; readonly transactionId: string },
): Promise<{ transactionId: string; status: 'cancelled'; message: string }> {
  if (ctx.afterwards === undefined) await closeInvoiceOf(ctx, input);
  const after = await decide(ctx, input.transactionId, {
    merchantId: input.merchantId,
    decision: cancel,
    refuseEarly: refuseCancel,
    refusal: 'transaction_not_cancellable',
  });
  if (after === null) throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  return { transactionId: input.transactionId, status: 'cancelled', message: 'The transaction has been cancelled.' };
}

/**
 * Rules 12 and 14, and the excess of a transaction that is paid (reimbursements: reimbursements.ts).
 * @throws Refusal transaction_not_found, not_resolvable
 */
export async function resolveTransaction(
  ctx: Context,
  input: {
    /** Whose decision it is; null = the operator's. */
    readonly merchantId: bigint | null;
    readonly transactionId: string;
    readonly action: 'accept' | 'decline';
    readonly part: 'excess' | null;
  },
): Promise<{ transactionId: string; status: TransactionStatus }> {
  if (input.action === 'decline' && input.part !== null) {
    throw new Refusal('invalid_request', { param: 'part', message: 'part goes with accept or reimburse.' });
  }
  const [apply, refuseEarly] =
    input.action === 'decline'
      ? [decline, refuseDecline]
      : input.part === 'excess'
        ? [acceptExcess, refuseExcess]
        : [accept, refuseAccept];
  const after = await decide(ctx, input.transactionId, {
    ...(input.merchantId === null ? {} : { merchantId: input.merchantId }),
    decision: (it) => apply(it, input.merchantId === null ? 'operator' : 'merchant'),
    refuseEarly,
    refusal: 'not_resolvable',
  });
  if (after === null) throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  return { transactionId: after.id, status: after.status };
}
