// Compares the node's own list of payments with what payouts have asked for: what the node has paid and nobody here knows of turns the audit red.
import type { PayingNode, PaymentFacts } from '../../core/lightning/payer.ts';
import type { Context } from '../../flow/context.ts';
import { readPaymentsCompared, recordSent } from '../../store/lightning/sent-payments.ts';

/** Asks the signer; throws with a `fault` when it, or the node, cannot be asked. */
export type SentPayments = {
  node(): Promise<PayingNode>;
  payments(after: bigint): Promise<readonly PaymentFacts[]>;
};

const PAGES_AT_ONCE = 20;

/** Throws with a `fault` when the signer, or the node, cannot be asked. */
export async function readSent(
  ctx: Context,
  sent: Pick<SentPayments, 'payments'>,
  { identity, pages }: { readonly identity: string; readonly pages: number },
): Promise<boolean> {
  let compared = await readPaymentsCompared(ctx.db, identity);
  if (compared === null) return false;
  let isEnded = true;
  for (let read = 0, from = compared; read < pages; read++) {
    const page = await sent.payments(from);
    if (page.length === 0) return false;
    for (const { paymentIndex, status } of page) {
      isEnded &&= status !== 'in_flight';
      if (isEnded) compared = BigInt(paymentIndex);
      from = BigInt(paymentIndex);
    }
    await recordSent(ctx.db, identity, page, compared, ctx.ports.clock.now());
  }
  return isEnded;
}

/**
 * Reads on from the first payment that may still change.
 * @returns whether there is more to read at once
 */
export async function comparePayments(ctx: Context, sent: SentPayments): Promise<boolean> {
  try {
    const { identity } = await sent.node();
    return await readSent(ctx, sent, { identity, pages: PAGES_AT_ONCE });
  } catch (error) {
    // the job that pays says what is wrong
    if ((error as { fault?: string }).fault === undefined) throw error;
    return false;
  }
}
