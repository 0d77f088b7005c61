// An operator has a bank file booked that the bank had refused and has executed all the same: what was given back of its payouts is taken from
// their merchants again, and the file goes on as one that the bank has.
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import { least, minus } from '../../core/money.ts';
import { achExecutedEntries, bankOutflowExecutedEntry } from '../../core/payouts/ach-postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { achPayoutIds, readAchLost } from '../../store/ach/entries.ts';
import { lockAchFile } from '../../store/ach/files.ts';
import { setAchExecuted } from '../../store/ach/hand-overs.ts';
import { askAgain, paidByLost } from '../../store/ach/lost-entries.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { asBooked, bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import { lockPayouts, movedPayout, movePayout, type PayoutRow } from '../../store/payouts/payouts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { stillOwed } from '../payouts/after-restore/recover.ts';

type Executed = { readonly name: string; readonly by: string };

/**
 * Books such a file, in one database transaction. Its payouts wait for returns from now on as those of any other file; one that the bank has sent
 * back stays failed, because its merchant has his money.
 * @throws Refusal not_resolvable for a file that was not refused, and while payouts that it was found to have paid are not given back
 */
export function recoverExecutedFile(ctx: Context, { name, by }: Executed): Promise<readonly string[]> {
  return ctx.db.transaction(async (sql) => {
    const state = await lockAchFile(sql, name);
    if (state !== 'refused')
      throw new Refusal('not_resolvable', {
        message: `Bank file ${name} is ${state ?? 'none of ours'}: only one that the bank has refused can have been executed all the same.`,
      });
    if ((await paidByLost(sql, name)).some(({ isPaid }) => isPaid))
      throw new Refusal('not_resolvable', {
        message: `What the refusal of bank file ${name} gives back is not booked yet: it waits for a rate.`,
      });
    const payouts = await asBooked(sql, await lockPayouts(sql, await achPayoutIds(sql, name, 'kept')));
    for (const payout of payouts) await takeAgain(ctx, sql, payout, { name, by });
    const atMs = ctx.ports.clock.now();
    const lost = await readAchLost(sql, name);
    const booked = await bookedStepsOf(sql, 'unknown', `usd:${name}`);
    if (lost > 0n) await postEntries(sql, [{ entry: bankOutflowExecutedEntry(name, lost, booked), transactionId: null, atMs }]);
    // who was found paid, or not, by what was refused has his money again
    await askAgain(sql, name);
    const settlesOn = settlementDate(easternTime(atMs).date);
    const isLeft = payouts.length > 0 || lost > 0n;
    await setAchExecuted(sql, name, atMs, isLeft ? { settlesOn, returnsEndMs: returnsEndMs(settlesOn) } : null);
    return payouts.map(({ id }) => id);
  });
}

/** What it had taken leaves its merchant's balance again; what he has spent since he owes. */
async function takeAgain(ctx: Context, sql: Sql, payout: PayoutRow, { name, by }: Executed): Promise<void> {
  const { source, merchantId } = payout;
  if (source === null) throw new Error(`${payout.id} by ach has no source`);
  const { currency, amount } = source;
  const balances = await lockBalances(sql, merchantId, [currency], { heldDollars: true });
  const there = least(balances.get(currency)?.available ?? 0n, amount);
  const booked = await bookedStepsOf(sql, 'po', payout.id);
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    achExecutedEntries({ ...payout, source }, there, booked).map((entry) => ({
      entry,
      transactionId: null,
      payoutId: payout.id,
      atMs,
    })),
  );
  const owes = stillOwed(minus(amount, there), currency);
  const reason = `the bank has executed file ${name} after it had refused it (${by})${owes}`;
  await movePayout(sql, await movedPayout(sql, payout, 'found_paid', { reason, atMs }), 'filed', { atMs });
}
