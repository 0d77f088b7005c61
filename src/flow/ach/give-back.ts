// What the bank has sent back of a payout buys the currency again that it was paid from.
import type { Entry } from '../../core/judge/case.ts';
import { plus } from '../../core/money.ts';
import { achReturnEntry } from '../../core/payouts/ach-postings.ts';
import { cryptoForUsdDown } from '../../core/rate.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { movedPayout, type PayoutRow, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { announcePayouts } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';

/** A payout by ach. */
export type Sourced = PayoutRow & { readonly source: NonNullable<PayoutRow['source']> };
/** Whether it is one by ach. */
export const isSourced = (payout: PayoutRow): payout is Sourced => payout.source !== null;

/** Books entries of a payout now. */
export async function post(ctx: Context, sql: Sql, payoutId: string, entries: readonly Entry[]): Promise<void> {
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, payoutId, atMs })),
  );
}

/** What the merchant owes in the balance that a payout is paid from; that, and the dollars held, are locked. */
export async function lockOwed(sql: Sql, { merchantId, source: { currency } }: Sourced): Promise<bigint> {
  return (await lockBalances(sql, merchantId, [currency], { heldDollars: true })).get(currency)?.receivable ?? 0n;
}

/** How a bank names one of our entries. */
export type Named = {
  /** The trace number that we had given it. */
  readonly trace: string;
  /** What names the payout in it (core/ach/own-file); empty where nothing does. */
  readonly reference: string;
};
/** An entry that the bank sends back. */
export type Returned = Named & {
  /** R01 and so on. */
  readonly code: string;
  readonly cents: bigint;
  /** What the merchant reads. */
  readonly error: string;
};
/** `unpriced`: there is no rate to buy crypto at, it must be booked later. `unknown`: nothing of ours, payouts are stopped. */
export type BookedReturn = 'booked' | 'again' | 'unpriced' | 'unknown';

/** What a payout has taken comes back, at the rate of this moment; false where there is no rate to buy at. The caller has locked it. */
export async function giveBack(
  ctx: Context,
  sql: Sql,
  payout: Sourced,
  { code, error }: Pick<Returned, 'code' | 'error'>,
): Promise<boolean> {
  const { currency } = payout.source;
  const atMs = ctx.ports.clock.now();
  const rate = (await latestRates(sql, ctx.ports.seals, [currency], atMs)).get(currency)?.usd;
  if (rate === undefined) return false;
  const bought = cryptoForUsdDown(plus(payout.amount, payout.feeMax), currency, rate);
  const owed = await lockOwed(sql, payout);
  await post(ctx, sql, payout.id, [achReturnEntry(payout, bought, payout.status === 'completed', owed)]);
  const reason = `returned by the bank: ${code}`;
  const after = await movedPayout(sql, payout, 'returned', { error, reason, givenBack: bought, atMs });
  const event = { payout: after, type: 'payout.returned', status: after.status, previous: null, reason };
  await announcePayouts(sql, [event], atMs);
  await wakeHeldJob(sql);
  return true;
}
