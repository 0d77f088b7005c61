// What a forgotten bank file has paid to nobody known comes back: the bank returns an entry of it, or refuses the file after all. It is not lost then,
// and a payout that it had paid, as a person has found, comes back like any other.
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import { minus, sum } from '../../core/money.ts';
import { bankLostBackEntry, type LostCents } from '../../core/payouts/ach-postings.ts';
import { readAchLost } from '../../store/ach/entries.ts';
import { lockAchFile, setAchAcked } from '../../store/ach/files.ts';
import { type LostEntry, lostEntriesOf, paidByLost, setLostReturned, setPaidBy } from '../../store/ach/lost-entries.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { bookedStepsOf, oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { lockPayout, lockPayouts } from '../../store/payouts/payouts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { type BookedReturn, giveBack, isSourced, type Returned } from './give-back.ts';

type Back = Pick<Returned, 'code' | 'error'>;

/** The bank has returned an entry that was booked as lost. */
export async function bookLostReturn(
  ctx: Context,
  sql: Sql,
  { file, trace, cents }: LostEntry,
  returned: Returned,
): Promise<BookedReturn> {
  const state = await lockAchFile(sql, file);
  const lost = (await lostEntriesOf(sql, file)).find((one) => one.trace === trace);
  if (lost === undefined || lost.returned !== null) return 'again';
  const paid = (await paidByLost(sql, file)).filter((one) => one.trace === trace && one.isPaid);
  const booked = await allPaidBack(
    ctx,
    sql,
    paid.map(({ payoutId }) => payoutId),
    returned,
  );
  if (booked === null) return 'unpriced';
  // nothing of a refused file is lost
  if (state !== 'refused') await postLostBack(ctx, sql, { file, what: `returned-${trace}`, entries: [{ cents, booked }] });
  await setLostReturned(sql, lost, returned.code);
  const atMs = ctx.ports.clock.now();
  const settlesOn = settlementDate(easternTime(atMs).date);
  // a return proves that the bank had the file
  await setAchAcked(sql, file, { atMs, settlesOn, returnsEndMs: returnsEndMs(settlesOn) });
  return 'booked';
}

/** What is lost of a file that the bank refuses is not. What payouts were found paid by it comes back by `giveBackPaid`. */
export async function bookLostBack(ctx: Context, sql: Sql, file: string): Promise<void> {
  const lost = (await lostEntriesOf(sql, file)).filter(({ returned }) => returned === null);
  const paid = await paidByLost(sql, file);
  await lockPayouts(sql, paid.map(({ payoutId }) => payoutId).toSorted());
  const entries = lost.map(
    ({ cents, trace }): LostCents => ({
      cents,
      booked: sum(paid.flatMap((one) => (one.trace === trace ? [one.amount] : []))),
    }),
  );
  // booked before its entries were noted one by one
  const others = minus(await readAchLost(sql, file), sum(lost.map(({ cents }) => cents)));
  await postLostBack(ctx, sql, { file, what: 'refused', entries: [...entries, { cents: others, booked: 0n }] });
}

/** Payouts that a file was found to have paid, and that the bank has refused, come back like returns. */
export async function giveBackPaid(ctx: Context, file: string, refused: Back): Promise<'booked' | 'unpriced'> {
  for (const { trace, payoutId } of await paidByLost(ctx.db, file)) {
    const isBooked = await ctx.db.transaction(async (sql) => {
      if ((await paidBack(ctx, sql, payoutId, refused)) === null) return false;
      const lost = (await lostEntriesOf(sql, file)).find((one) => one.trace === trace);
      if (lost?.paid === payoutId) await setPaidBy(sql, lost, null);
      return true;
    });
    if (!isBooked) return 'unpriced';
  }
  return 'booked';
}

/** The same for payouts together: what was booked for all of them, or null, and nothing is booked then. */
async function allPaidBack(ctx: Context, sql: Sql, payoutIds: readonly string[], back: Back): Promise<bigint | null> {
  const payouts = (await lockPayouts(sql, [...payoutIds].sort())).filter(isSourced);
  const currencies = [...new Set(payouts.map(({ source }) => source.currency))];
  const rates = await latestRates(sql, ctx.ports.seals, currencies, ctx.ports.clock.now());
  if (currencies.some((currency) => rates.get(currency)?.usd === undefined)) return null;
  for (const { id } of payouts)
    if ((await paidBack(ctx, sql, id, back)) === null) throw new Error(`there is no rate for ${id} any more`);
  return sum(payouts.map(({ amount }) => amount));
}

/** Gives back what a payout has taken that an entry had paid. @returns what was booked for it, in cents; null where there is no rate to buy at */
export async function paidBack(ctx: Context, sql: Sql, payoutId: string, back: Back): Promise<bigint | null> {
  const row = await lockPayout(sql, payoutId, { wait: true });
  const payout = row === null ? null : await oneAsBooked(sql, row);
  if (payout === null || !isSourced(payout) || payout.status !== 'completed') return 0n;
  return (await giveBack(ctx, sql, payout, back)) ? payout.amount : null;
}

async function postLostBack(
  ctx: Context,
  sql: Sql,
  { file, what, entries }: { readonly file: string; readonly what: string; readonly entries: readonly LostCents[] },
): Promise<void> {
  const entry = bankLostBackEntry(file, what, entries, await bookedStepsOf(sql, 'unknown', `usd:${file}`));
  if (entry !== null) await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}
