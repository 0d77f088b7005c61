// Cancels whose calls were cut off after the node had been asked: the books follow what the node has done. Where it has not cancelled the invoice, that can still
// be paid, and its transaction waits on.
import type { LightningPort } from '../../core/lightning/port.ts';
import { Refusal } from '../../core/refusal.ts';
import type { Context } from '../../flow/context.ts';
import { cancelTransaction } from '../../flow/transactions/create-cancel-resolve.ts';
import { cancelsAsked } from '../../store/lightning/invoices.ts';

/** Longer than the node may take for an answer, and the database for what is booked then. */
const UNDER_WAY_MS = 45_000;
/** The others are for the next time. */
const AT_ONCE = 100;

/** Cancels each transaction whose merchant has asked for that, and whose invoice the node has cancelled. */
export async function finishCancels(ctx: Context, port: LightningPort): Promise<void> {
  const nowMs = ctx.ports.clock.now();
  for (const { paymentHash, ...of } of await cancelsAsked(ctx.db, {
    nowMs,
    askedBeforeMs: nowMs - UNDER_WAY_MS,
    limit: AT_ONCE,
  })) {
    if ((await port.invoice(paymentHash))?.state !== 'cancelled') continue;
    try {
      await cancelTransaction(ctx, of);
    } catch (error) {
      // it was paid by a payout here meanwhile, or the node does not answer any more
      if (!(error instanceof Refusal)) throw error;
    }
  }
}
