// What the operator's console shows of the service, over all merchants: what the commands list too. Nothing is changed here.
import { maskedAccount } from '../core/ach/bank-account.ts';
import { openedOrNull } from '../core/sealed-text.ts';
import { listMerchants } from '../store/merchants/merchants.ts';
import { type ListedPayout, listOpenPayouts } from '../store/payouts/reads.ts';
import { listReviews } from '../store/transactions/reviews.ts';
import type { Context } from './context.ts';

/** The most that a page lists; the commands list more. */
export const MOST_LISTED = 200;

/** Transactions that wait for a decision, the oldest first. */
export const reviewsOfAll = ({ db }: Context) => listReviews(db, { declined: false, limit: MOST_LISTED });

/** Payouts that have neither arrived nor failed, and reimbursements that are not over, the oldest first; bank accounts without all but their last digits. */
export async function payoutsOfAll(
  ctx: Context,
): Promise<readonly (Omit<ListedPayout, 'destination'> & { readonly destination: string | null })[]> {
  const found = await listOpenPayouts(ctx.db, MOST_LISTED);
  return found.map((one) => {
    const destination = openedOrNull(ctx.ports.sealing, one.destination, one.id);
    return { ...one, destination: destination === null ? null : maskedAccount(destination) };
  });
}

/** Merchants with their users, the oldest first. */
export const merchantsOfAll = ({ db }: Context) => listMerchants(db, MOST_LISTED);
