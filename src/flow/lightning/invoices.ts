// Invoices of our Lightning node for transactions. The node is never asked inside a database transaction: what must not be done twice is
// committed before (the preimage), and what the node says decides whether an invoice was paid or cancelled first.
import { createHash } from 'node:crypto';
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import { sortableId } from '../../core/ids.ts';
import { WINDOW_MS } from '../../core/judge/times.ts';
import type { LightningPort } from '../../core/lightning/port.ts';
import { formatAmount, mulDivDown } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import {
  closeInvoices,
  dropReservation,
  findReservation,
  invoiceOf,
  noteCancelAsked,
  type Reservation,
  reserveInvoice,
} from '../../store/lightning/invoices.ts';
import { recordSettled } from '../../store/lightning/settlements.ts';
import type { Context } from '../context.ts';
import { quoteLightning, quoteLightningNow } from '../transactions/quote.ts';

/** An invoice that the node has; its transaction is not written yet. */
export type PreparedInvoice = {
  readonly reservation: Reservation;
  /** BOLT11. */
  readonly paymentRequest: string;
};

export type InvoiceAsked = {
  readonly merchantId: bigint;
  /** Cents. */
  readonly usdMinor: bigint;
  readonly label: string | null;
  /** The call's idempotency key: the same call again gets the same invoice. */
  readonly call: { readonly key: string; readonly bodyHash: Uint8Array } | null;
};

/** A call that is repeated later than this before its window ends gets a new invoice. */
const LEAST_WINDOW_MS = 60_000;
/** As long as the node may take to make an invoice, and the database for its transaction. */
const MAKING_MS = 30_000;
/** BOLT11 descriptions in LND. */
const MOST_DESCRIPTION_BYTES = 639;
/** A row that is refused this often at an unchanged price is refused for another reason. */
const MOST_UNCHANGED = 3;

/**
 * Reserves an invoice, commits that, and asks the node for it.
 * @throws Refusal as a quote does; amount_above_maximum above what the node can receive now, lightning_unavailable
 */
export async function prepareInvoice(ctx: Context, asked: InvoiceAsked): Promise<PreparedInvoice> {
  const port = portOf(ctx);
  const before = await reservedBefore(ctx, port, asked);
  const reservation = before ?? (await reserve(ctx, port, asked));
  const left = reservation.windowEndsAtMs - ctx.ports.clock.now();
  const paymentRequest = await answerOf(() =>
    port.addInvoice({
      preimage: ctx.ports.sealing.open(reservation.preimage, about(reservation.paymentHash)),
      amountMsat: msatOf(reservation.amountDue),
      expirySeconds: Math.max(1, Math.ceil(left / 1000)),
      description: descriptionOf(asked.label, reservation.transactionId),
    }),
  );
  return { reservation, paymentRequest };
}

/** What the same call reserved before, as long as it can still be paid. @throws Refusal request_in_progress while one of another body may still be made */
async function reservedBefore(
  ctx: Context,
  port: LightningPort,
  { merchantId, call }: InvoiceAsked,
): Promise<Reservation | null> {
  if (call === null) return null;
  const found = await findReservation(ctx.db, merchantId, call.key);
  if (found === null) return null;
  const isSame = Buffer.from(call.bodyHash).equals(Buffer.from(found.bodyHash ?? []));
  if (isSame && found.windowEndsAtMs - ctx.ports.clock.now() > LEAST_WINDOW_MS) return found;
  // another API may be making it: what it has reserved is not another body's to give up
  if (!isSame && Math.abs(ctx.ports.clock.now() - found.createdAtMs) <= MAKING_MS) throw new Refusal('request_in_progress');
  if (await dropReservation(ctx.db, found.paymentHash)) await answerOf(() => port.cancelInvoice(found.paymentHash));
  return null;
}

async function reserve(ctx: Context, port: LightningPort, asked: InvoiceAsked): Promise<Reservation> {
  const { merchantId, usdMinor, call } = asked;
  let priced = await quoteLightning(ctx, usdMinor);
  await refuseUnreceivable(port, priced.amountDue);
  const nowMs = ctx.ports.clock.now();
  const preimage = ctx.ports.rng.bytes(32);
  const paymentHash = createHash('sha256').update(preimage).digest('hex');
  const made = {
    paymentHash,
    preimage: ctx.ports.sealing.seal(preimage, about(paymentHash)),
    transactionId: sortableId('txn_', nowMs, ctx.ports.rng.bytes(10)),
    merchantId,
    key: call?.key ?? null,
    bodyHash: call?.bodyHash ?? null,
    usdMinor,
    createdAtMs: nowMs,
    windowEndsAtMs: nowMs + WINDOW_MS,
  };
  for (let unchanged = 0; ; ) {
    const reservation = { ...made, amountDue: priced.amountDue, rate: priced.rate };
    if (await reserveInvoice(ctx.db, reservation)) return reservation;
    // the price or the node has changed since it was read, or the same call has reserved meanwhile
    const other = await reservedBefore(ctx, port, asked);
    if (other !== null) return other;
    const now = await quoteLightningNow(ctx, usdMinor);
    unchanged = now.rate === priced.rate ? unchanged + 1 : 0;
    if (unchanged === MOST_UNCHANGED) throw new Error(`no invoice could be reserved for merchant ${merchantId}`);
    priced = now;
    await refuseUnreceivable(port, priced.amountDue);
  }
}

async function refuseUnreceivable(port: LightningPort, amountDue: bigint): Promise<void> {
  const most = mulDivDown(await answerOf(() => port.receivableMsat()), 1n, MSAT);
  if (amountDue <= most) return;
  if (most === 0n)
    throw new Refusal('lightning_unavailable', {
      message: 'The Lightning node has no channel that can receive anything right now.',
    });
  throw new Refusal('amount_above_maximum', {
    param: 'amount',
    message: `The Lightning node can receive ${formatAmount(most, LIGHTNING.code)} ${LIGHTNING.balance} at most right now; this is ${formatAmount(amountDue, LIGHTNING.code)} ${LIGHTNING.balance}.`,
  });
}

/**
 * Before a cancel: makes the node cancel the invoice of a transaction that waits for payment. Where it was paid first, that is recorded, and
 * the cancel finds a paid transaction. Does nothing for any other transaction. That the merchant has asked for it is committed before the node is asked:
 * the worker books what the node has done where this call cannot (worker/lightning/interrupted-cancels).
 * @param before comes before the node is asked
 * @throws Refusal lightning_unavailable: the node has not said which of the two it is; what `before` throws
 */
export async function closeInvoiceOf(
  ctx: Context,
  of: { readonly merchantId: bigint; readonly transactionId: string },
  before: () => Promise<void> = async () => undefined,
): Promise<void> {
  const found = await invoiceOf(ctx.db, of.transactionId);
  if (found === null || found.merchantId !== of.merchantId || found.state !== 'open') return;
  const port = portOf(ctx);
  await before();
  await noteCancelAsked(ctx.db, found.paymentHash, ctx.ports.clock.now());
  const said = await answerOf(() => port.cancelInvoice(found.paymentHash));
  if (said !== 'settled') return closeInvoices(ctx.db, [found.paymentHash]);
  const facts = await answerOf(() => port.invoice(found.paymentHash));
  if (facts?.state === 'settled') await recordSettled(ctx.db, null, [facts], ctx.ports.clock.now());
}

function portOf({ ports }: Context): LightningPort {
  if (ports.lightning === null)
    throw new Refusal('lightning_unavailable', { message: 'Lightning is not available on this server: no node is configured.' });
  return ports.lightning;
}

/** What the node answers; where it does not, nobody knows whether it has done what was asked. */
async function answerOf<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const { name } = error as Error;
    if (name === 'NodeTrouble' || name === 'LndRefusal')
      throw new Refusal('lightning_unavailable', { message: 'The Lightning node does not answer as it should right now.' });
    throw error;
  }
}

const msatOf = (amountDue: bigint): bigint => mulDivDown(amountDue, MSAT, 1n);
const about = (paymentHash: string): string => `preimage ${paymentHash}`;

/** What the payer's wallet shows: the label, as much of it as fits, else the transaction's id. */
function descriptionOf(label: string | null, transactionId: string): string {
  const bytes = Buffer.from(label ?? transactionId);
  if (bytes.length <= MOST_DESCRIPTION_BYTES) return bytes.toString();
  return bytes.subarray(0, MOST_DESCRIPTION_BYTES).toString().replace(/�$/u, '');
}
