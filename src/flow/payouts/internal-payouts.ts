// Payouts to the address of another merchant's transaction here: one database transaction takes the amount from its hold and makes it a payment
// of that transaction, which its judge then treats like any other. Nothing leaves, so nothing is signed and no network fee is due.
import { completeEntries, signEntry } from '../../core/payouts/payout-postings.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { insertInternalPayment, lockInternal } from '../../store/payouts/internal-payouts.ts';
import { movePayout, paidFrom } from '../../store/payouts/payouts.ts';
import type { Context } from '../context.ts';

/** Books every one that may be booked now. */
export async function bookInternalPayouts(ctx: Context): Promise<void> {
  while (await bookNext(ctx));
}

function bookNext(ctx: Context): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const row = await lockInternal(sql);
    if (row === null) return false;
    const payout = await oneAsBooked(sql, row);
    const atMs = ctx.ports.clock.now();
    const currency = paidFrom(payout);
    const posted = { ...payout, currency };
    const owed = (await lockBalances(sql, payout.merchantId, [currency])).get(currency)?.receivable ?? 0n;
    const taken = signEntry(posted, 0, 0n, null);
    const entries = [...(taken === null ? [] : [taken]), ...completeEntries(posted, 0n, 0n, owed)];
    await postEntries(
      sql,
      entries.map((entry) => ({ entry, transactionId: null, payoutId: payout.id, atMs })),
    );
    await insertInternalPayment(sql, payout, atMs);
    await movePayout(sql, payout, 'booked_here', { fee: 0n, completedAtMs: atMs, atMs });
    return true;
  });
}
