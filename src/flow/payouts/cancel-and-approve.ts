// What merchants and operators do with a payout that was requested: cancel, approve. Each is one database transaction in which the payout,
// its entries and its event are written together; nothing outside is called while it is open.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import { achReleaseEntry } from '../../core/payouts/ach-postings.ts';
import { approvalBytes } from '../../core/payouts/intent.ts';
import { releaseEntry } from '../../core/payouts/postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { isAskedBefore } from '../../store/lightning/asked-before.ts';
import { setEnded } from '../../store/lightning/payment-rows.ts';
import { listedBy } from '../../store/lightning/sent-payments.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { notComparedSince } from '../../store/payouts/comparisons.ts';
import { lockPayout, movedPayout, type PayoutRow, paidFrom, setApproved, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { dropOperatorHold, lacksApproval } from '../../store/payouts/waiting-for-operator.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { reconsiderLocked } from './held-reasons.ts';

/**
 * Cancels a payout that waits: it is failed with the error `cancelled`, its hold repays what is owed and enters available. A second cancel
 * gets the same answer. Refused too while chain or bank must be compared first (comparison-wait.ts waits for that).
 * @throws Refusal payout_not_found, payout_not_cancellable
 */
export async function cancelPayout(
  ctx: Context,
  of: { readonly merchantId: bigint; readonly payoutId: string },
): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, of.payoutId, { wait: true });
    if (payout === null || payout.merchantId !== of.merchantId || payout.reimburses !== null)
      throw new Refusal('payout_not_found', { param: 'payout_id' });
    return cancelLocked(ctx, sql, payout, {});
  });
}

/**
 * The same by an operator, who may cancel a reimbursement too: one whose destination cannot be paid would wait for ever, and nothing else could be
 * decided for its transaction.
 * @throws Refusal payout_not_found, payout_not_cancellable
 */
export async function cancelByOperator(ctx: Context, of: { readonly payoutId: string; readonly by: string }): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, of.payoutId, { wait: true });
    if (payout === null) throw new Refusal('payout_not_found', { param: 'payout_id' });
    return cancelLocked(ctx, sql, payout, { reason: `cancelled by the operator (${of.by})` });
  });
}

/** For one whose row the caller has locked. */
async function cancelLocked(ctx: Context, sql: Sql, payout: PayoutRow, why: { readonly reason?: string }): Promise<PayoutRow> {
  if (payout.status === 'failed' && payout.error === CANCELLED) return payout;
  if (payout.status !== 'pending') {
    const message = `The payout is ${payout.status}; only a pending one can be cancelled.`;
    throw new Refusal('payout_not_cancellable', { message, param: 'payout_id' });
  }
  const booked = await oneAsBooked(sql, payout);
  const currency = paidFrom(booked);
  // what a forgotten batch paid is found on the chain, a forgotten bank file in our folder
  if ((await notComparedSince(sql)).has(comparedAs(payout, currency))) {
    // a start is one reason, what a node shows that is not known here another, and that may last
    const message =
      'The server compares what it knows with chain and bank first: it was started again, or a node shows a payment that it does not know. Try again later.';
    throw new Refusal('payout_not_cancellable', { message, param: 'payout_id', passes: true });
  }
  if (payout.paymentHash != null && (await isAskedBefore(sql, payout.id))) {
    const message =
      'Our Lightning node was to pay it before the server was restored from a copy, and may have: only its end says whether it was paid.';
    throw new Refusal('payout_not_cancellable', { message, param: 'payout_id' });
  }
  if (payout.paymentHash != null && (await listedBy(sql, payout.id)) !== null) {
    const message = 'Our Lightning node has paid it already: it is completed by that once nothing holds it.';
    throw new Refusal('payout_not_cancellable', { message, param: 'payout_id' });
  }
  const atMs = ctx.ports.clock.now();
  // the judge of its transaction says where the payments of a reimbursement belong
  if (payout.reimburses === null) await release(sql, { ...booked, currency }, atMs);
  const givenBack = booked.source === null ? {} : { givenBack: booked.source.amount };
  const after = await movedPayout(sql, payout, 'cancelled', { error: CANCELLED, ...why, atMs, ...givenBack });
  await setEnded(sql, payout.id, 'failed');
  await markReimbursing(sql, payout.reimburses === null ? [] : [payout.reimburses]);
  // what it repaid may let others go on
  await wakeHeldJob(sql);
  return after;
}

/** What it holds repays what its merchant owes, and the rest enters available. */
async function release(sql: Sql, payout: PayoutRow & { readonly currency: CurrencyCode }, atMs: number): Promise<void> {
  const { id, merchantId, source, currency } = payout;
  const balances = await lockBalances(sql, merchantId, [currency], { heldDollars: source !== null });
  const owed = balances.get(currency)?.receivable ?? 0n;
  const entry = source === null ? releaseEntry(payout, owed) : achReleaseEntry({ ...payout, source }, owed);
  await postEntries(sql, [{ entry, transactionId: null, payoutId: id, atMs }]);
}

/** What is compared before a payout may be cancelled: where a forgotten payment of it would be found. */
function comparedAs({ source, paymentHash }: PayoutRow, currency: string): string {
  if (source !== null) return 'USD';
  return paymentHash == null ? currency : LIGHTNING.code;
}

/** The error of a payout that its merchant, or the operator, has cancelled. */
export const CANCELLED = 'cancelled';

/**
 * An operator approves a payout that waits for it; it goes on at once when nothing else holds it. Approving twice changes nothing.
 * @throws Refusal payout_not_found; not_resolvable when it does not wait for approval
 */
export async function approvePayout(ctx: Context, input: { readonly payoutId: string; readonly by: string }): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, input.payoutId, { wait: true });
    if (payout === null) throw new Refusal('payout_not_found', { param: 'payout_id' });
    const waitsForIt = payout.status === 'pending' && payout.heldReason === 'approval';
    // what a restored database had forgotten was approved is on its way already, and whoever sends it again asks for the signature
    const isUnderWay = payout.status === 'processing' && (await lacksApproval(sql, payout.id));
    if (payout.approvedAtMs !== null && !waitsForIt && !isUnderWay) return payout;
    if (!isUnderWay && (payout.status !== 'pending' || !(payout.needsApproval || payout.heldReason === 'approval'))) {
      const waits = payout.heldReason === null ? '' : ` and waits for ${payout.heldReason}`;
      throw new Refusal('not_resolvable', { message: `The payout is ${payout.status}${waits}: it does not wait for approval.` });
    }
    // the signer believes nothing that stands in the database: where it asks for a person, it needs a signature of the approval
    const isAsked = payout.needsApproval || payout.reimburses !== null;
    const approval = isAsked ? ctx.ports.intentKey.sign(approvalBytes(ctx.network, payout.id)) : null;
    await setApproved(sql, payout.id, { by: input.by, approval, atMs: ctx.ports.clock.now() });
    // one that the signer has refused is tried again at once
    if (payout.batchId !== null && !isUnderWay) await dropOperatorHold(sql, payout.id);
    if (!isUnderWay) await reconsiderLocked(ctx, sql, { ...payout, batchId: null, approvedAtMs: ctx.ports.clock.now() });
    return (await lockPayout(sql, payout.id, { wait: true })) as PayoutRow;
  });
}
