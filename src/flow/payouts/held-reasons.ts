// Why a payout waits, and what lets it go on: decided when it is requested, and again when a reason may have ended.
import type { CurrencyCode } from '../../core/currency.ts';
import { MOST_UNDER_WAY } from '../../core/lightning/under-way.ts';
import { minus, plus } from '../../core/money.ts';
import { heldReason, isAboveLimit, missingIfLost } from '../../core/payouts/held-reason.ts';
import type { HeldReason } from '../../core/payouts/states.ts';
import { lockBalances } from '../../store/ledger/ledger.ts';
import { othersGoing, setDueNow } from '../../store/lightning/under-way.ts';
import { wakeDriver } from '../../store/payouts/outgoing-facts.ts';
import { lockPayout, movePayout, type PayoutRow, paidFrom, setHeldReason } from '../../store/payouts/payouts.ts';
import { lockUnfinal, readStops, readUnfinal, type UnfinalCredit } from '../../store/payouts/request-facts.ts';
import { dropOperatorHold, isDueAgain } from '../../store/payouts/waiting-for-operator.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { getPayoutGuards, type PayoutGuards } from '../merchants/settings.ts';

/** What is asked about: a payout that is there, or one that is being requested (`id` null). */
export type HeldPayout = {
  readonly id: string | null;
  readonly merchantId: bigint;
  readonly currency: CurrencyCode;
  readonly usdMinor: bigint | null;
  readonly needsApproval: boolean;
  readonly isApproved: boolean;
};

/** What is known of its merchant at this moment. */
export type HoldingFacts = {
  /**
   * What is available in the currency that pays it once its own hold has left, and what those hold that wait and are not written yet; the
   * balance is locked.
   */
  readonly left: bigint;
  readonly guards: PayoutGuards;
  readonly isStopped: boolean;
  readonly owes: boolean;
  /** Absent: it needs none of our channels. */
  readonly isCrowded?: boolean;
  /** Its merchant's, where it was read before ({@link unfinalCredit}). */
  readonly unfinal?: readonly UnfinalCredit[] | null;
};

/** Why this payout waits; null when nothing holds it. */
export async function whyHeld(
  ctx: Context,
  sql: Sql,
  payout: HeldPayout,
  now: HoldingFacts,
): Promise<ReturnType<typeof heldReason>> {
  return heldReason({
    isStopped: now.isStopped,
    owes: now.owes,
    needsApproval: payout.needsApproval || isAboveLimit(payout.usdMinor, now.guards.approvalAbove),
    isApproved: payout.isApproved,
    isTooEarly: await isTooEarly(ctx, sql, payout, now),
    isCrowded: now.isCrowded === true,
  });
}

/**
 * A merchant's credits that are not final, and what his waiting payouts hold, all but this one; null where no limit asks for it. Measured one
 * at a time until the transaction ends: balances are locked by currency, and the limit is one for all of them.
 */
export async function unfinalCredit(
  ctx: Context,
  sql: Sql,
  { merchantId, id }: Pick<HeldPayout, 'merchantId' | 'id'>,
): Promise<readonly UnfinalCredit[] | null> {
  if (ctx.unfinalPayoutMinor === null) return null;
  await lockUnfinal(sql, merchantId);
  return readUnfinal(sql, merchantId, id);
}

/** What of a merchant's other payouts still waits counts as here. */
async function isTooEarly(ctx: Context, sql: Sql, payout: HeldPayout, now: HoldingFacts): Promise<boolean> {
  const limit = ctx.unfinalPayoutMinor;
  const credits = now.unfinal === undefined ? await unfinalCredit(ctx, sql, payout) : now.unfinal;
  if (limit === null || credits === null) return false;
  const parts = credits.map((part) => ({
    currency: part.currency,
    unfinal: part.unfinal,
    left: plus(part.currency === payout.currency ? now.left : part.available, part.waiting),
  }));
  const short = parts.filter((part) => minus(part.unfinal, part.left) > 0n).map(({ currency }) => currency);
  if (short.length === 0) return false;
  const rates = await latestRates(sql, ctx.ports.seals, short, ctx.ports.clock.now());
  const missing = missingIfLost(parts, new Map([...rates].map(([currency, { usd }]) => [currency, usd])));
  return missing === null || missing > limit;
}

/**
 * Looks at one payout that waits, or that is due to leave while payouts are stopped or its merchant owes something: it goes on, waits for
 * another reason, or stays as it is.
 * @returns whether it was moved; false too when another session holds it
 */
export async function reconsiderPayout(ctx: Context, payoutId: string): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, payoutId, { wait: false });
    return payout !== null && (await reconsiderLocked(ctx, sql, payout));
  });
}

/** The same for a payout that the caller has locked. */
export async function reconsiderLocked(ctx: Context, sql: Sql, payout: PayoutRow): Promise<boolean> {
  if (payout.step !== 'held' && payout.step !== 'queued') return false;
  // the judge of its transaction says when the payments of a reimbursement are final
  if (payout.reimburses !== null && payout.heldReason === 'not_final') return false;
  const { merchantId } = payout;
  const currency = paidFrom(payout);
  const left = (await lockBalances(sql, merchantId, [currency])).get(currency)?.available ?? 0n;
  const stops = await readStops(sql, merchantId);
  const atMs = ctx.ports.clock.now();
  if (payout.step === 'queued') {
    if (stops.isStopped && payout.reimburses === null) await movePayout(sql, payout, 'stopped', { heldReason: 'breaker', atMs });
    else if (stops.owes) await movePayout(sql, payout, 'held_again', { heldReason: 'receivable', atMs });
    return stops.isStopped || stops.owes;
  }
  const waitsForOperator = payout.batchId !== null && payout.heldReason === 'approval';
  if (waitsForOperator && !(await isDueAgain(sql, payout.id, atMs))) return false;
  const isCrowded = payout.paymentHash != null && (await isOneTooMany(sql, payout.id));
  const reason = await reasonNow(ctx, sql, payout, { ...stops, left, isCrowded });
  if (reason !== null) {
    if (reason !== payout.heldReason) await setHeldReason(sql, payout.id, reason);
    return false;
  }
  if (payout.batchId !== null) await dropOperatorHold(sql, payout.id);
  await movePayout(sql, payout, 'hold_ended', { atMs });
  if (payout.paymentHash != null) await setDueNow(sql, payout.id, atMs);
  await wakeDriver(sql);
  return true;
}

/** Whether as many of its merchant as may be are under way over Lightning, or about to be; his balance is locked. */
async function isOneTooMany(sql: Sql, payoutId: string): Promise<boolean> {
  return (await othersGoing(sql, payoutId)) >= MOST_UNDER_WAY;
}

/** One that was processing already waits only for what is owed, or for a person. */
async function reasonNow(
  ctx: Context,
  sql: Sql,
  payout: PayoutRow,
  now: Omit<HoldingFacts, 'guards'>,
): Promise<HeldReason | null> {
  if (payout.reimburses !== null) return now.isCrowded === true ? 'cool_down' : null;
  if (payout.status === 'processing') {
    if (payout.heldReason !== 'receivable') return payout.heldReason;
    return now.owes ? 'receivable' : null;
  }
  const guards = await getPayoutGuards({ db: sql, ports: ctx.ports }, { merchantId: payout.merchantId });
  return whyHeld(
    ctx,
    sql,
    { ...payout, currency: paidFrom(payout), isApproved: payout.approvedAtMs !== null },
    { ...now, guards },
  );
}
