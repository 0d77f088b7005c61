// What the operator's console shows of the service, over all merchants: what the commands list too. Nothing is changed here.
import { maskedAccount } from '../core/ach/bank-account.ts';
import { openedOrNull } from '../core/sealed-text.ts';
import { listMerchants } from '../store/merchants/merchants.ts';
import { countDeliveries, countOpenPayouts, countReviews, readAssets, readOwed } from '../store/metrics/readings.ts';
import { type ListedPayout, listOpenPayouts } from '../store/payouts/reads.ts';
import { listReviews } from '../store/transactions/reviews.ts';
import { type Context, watchedCodes } from './context.ts';
import { webhookProblems } from './events/webhook-problems.ts';
import { readReadiness } from './readiness.ts';

/** The most that a page lists; the commands list more. */
export const MOST_LISTED = 200;
const MOST_DELIVERIES = 100_000;

/** The state of nodes, prices and breakers, and every problem in a sentence, as `/readyz` and `bursar chain status` say it. */
export async function readCondition(ctx: Context) {
  const [readiness, ofWebhooks] = await Promise.all([readReadiness(ctx, watchedCodes(ctx)), webhookProblems(ctx)]);
  return { ...readiness, problems: [...readiness.problems, ...ofWebhooks], nowMs: ctx.ports.clock.now() };
}

/** What the service has, what merchants have of it, and how much waits. */
export async function readTotals({ db }: Context) {
  const [assets, owed, reviews, payouts, deliveries] = await Promise.all([
    readAssets(db),
    readOwed(db),
    countReviews(db),
    countOpenPayouts(db),
    countDeliveries(db, MOST_DELIVERIES),
  ]);
  return { assets, owed, reviews, payouts, deliveries };
}

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
