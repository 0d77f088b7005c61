// Reading payouts: one, and lists, and how they are shown. Nothing is changed here.
import { formatAmount } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import { openedOrNull } from '../../core/sealed-text.ts';
import { listPayoutRows, type PayoutFilter, readPayout, type PayoutView as StoredView } from '../../store/payouts/reads.ts';
import type { Context } from '../context.ts';

/** `destination` as it was sent; null: a bank account that our key does not open. */
export type PayoutView = Omit<StoredView, 'destination'> & { readonly destination: string | null };

/**
 * What /check_payout shows.
 * @param input.param the field that names it
 * @throws Refusal payout_not_found, for another merchant's too
 */
export async function checkPayoutStatus(
  ctx: Context,
  input: { readonly merchantId: bigint; readonly payoutId: string; readonly param?: string },
): Promise<PayoutView> {
  const found = await readPayout(ctx.db, input.payoutId);
  if (found === null || found.merchantId !== input.merchantId)
    throw new Refusal('payout_not_found', { param: input.param ?? 'payout_id' });
  return opened(ctx, found);
}

/** A page of the merchant's payouts, newest first. */
export async function listPayouts(
  ctx: Context,
  filter: PayoutFilter,
): Promise<{ readonly data: readonly PayoutView[]; readonly hasMore: boolean }> {
  const rows = await listPayoutRows(ctx.db, filter);
  return { data: rows.slice(0, filter.limit).map((row) => opened(ctx, row)), hasMore: rows.length > filter.limit };
}

/**
 * A payout as `/check_payout`, the lists and events show it: `amount` as it was sent, `fee` in the payout's currency, null while it is unknown.
 * @param payout with its destination as it was sent
 */
export function shownPayout(payout: Omit<PayoutView, 'merchantId'>) {
  const { fee, currency, completedAtMs } = payout;
  return {
    id: payout.id,
    method: payout.method,
    amount: payout.amountText,
    status: payout.status,
    created_at: isoTime(payout.createdAtMs),
    fee: fee === null ? null : formatAmount(fee, currency),
    fee_currency: currency,
    destination: payout.destination,
    ...carriedBy(payout),
    error: payout.error,
    held_reason: payout.heldReason,
    completed_at: completedAtMs === null ? null : isoTime(completedAtMs),
  };
}

const isoTime = (ms: number): string => new Date(ms).toISOString();

function carriedBy({ method, txid, trace, paymentHash }: Pick<PayoutView, 'method' | 'txid' | 'trace' | 'paymentHash'>) {
  if (method === 'lightning') return { payment_hash: paymentHash };
  return method === 'ach' ? { trace } : { txid };
}

function opened(ctx: Context, view: StoredView): PayoutView {
  return { ...view, destination: openedOrNull(ctx.ports.sealing, view.destination, view.id) };
}
