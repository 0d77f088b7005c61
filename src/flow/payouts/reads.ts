// Reading payouts: one, and lists. Nothing is changed here.
import { Refusal } from '../../core/refusal.ts';
import { openText } from '../../core/sealed-text.ts';
import { listPayoutRows, type PayoutFilter, type PayoutView, readPayout } from '../../store/payouts/reads.ts';
import type { Context } from '../context.ts';

export type { PayoutView } from '../../store/payouts/reads.ts';

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

/** With the destination as it was sent. */
function opened(ctx: Context, view: PayoutView): PayoutView {
  return { ...view, destination: openText(ctx.ports.sealing, view.destination, view.id) };
}
