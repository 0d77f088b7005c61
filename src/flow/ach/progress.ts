// What the bank says of files and entries, one database transaction for each: it has a file, refuses one, returns an entry, or its days for
// returns are over. Only that ends a payout; a time-out never does.
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import { achReference } from '../../core/ach/own-file.ts';
import type { Entry } from '../../core/judge/case.ts';
import { plus } from '../../core/money.ts';
import { achCompleteEntry, achRefusedEntries, achReturnEntry, bankOutflowUndoneEntry } from '../../core/payouts/ach-postings.ts';
import { cryptoForUsdDown } from '../../core/rate.ts';
import {
  type AchEntry,
  achPayoutIds,
  payoutsByReference,
  readAchEntries,
  readAchEntry,
  readAchLost,
  setAchNotice,
  setAchReturned,
} from '../../store/ach/entries.ts';
import { type AchFileState, endAchFile, lockAchFile, setAchAcked } from '../../store/ach/files.ts';
import { tripBreaker, wasCleared } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { asBooked, bookedStepsOf, oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import {
  isResolved,
  lockPayout,
  lockPayouts,
  movedPayout,
  movePayout,
  type PayoutRow,
  wakeHeldJob,
} from '../../store/payouts/payouts.ts';
import { announcePayouts, writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';

type Sourced = PayoutRow & { readonly source: NonNullable<PayoutRow['source']> };
const isSourced = (payout: PayoutRow): payout is Sourced => payout.source !== null;

async function post(ctx: Context, sql: Sql, payoutId: string, entries: readonly Entry[]): Promise<void> {
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, payoutId, atMs })),
  );
}

/** What the merchant owes in the balance that a payout is paid from; that, and the dollars held, are locked. */
async function lockOwed(sql: Sql, { merchantId, source: { currency } }: Sourced): Promise<bigint> {
  return (await lockBalances(sql, merchantId, [currency], { heldDollars: true })).get(currency)?.receivable ?? 0n;
}

/** The bank has the file: from today its entries settle on the next banking day. False for a file that is not ours. */
export async function acknowledgeFile(ctx: Context, name: string): Promise<boolean> {
  const atMs = ctx.ports.clock.now();
  const settlesOn = settlementDate(easternTime(atMs).date);
  return setAchAcked(ctx.db, name, { atMs, settlesOn, returnsEndMs: returnsEndMs(settlesOn) });
}

/**
 * Stops payouts where the bank says of a file that it has it, or sends something of it back, and has refused it before: what failed then was given
 * back, and is paid. Nobody but a person can say which word counts.
 * @param isNew false: it has said so before, and where an operator has let payouts go on since, they do
 * @returns what is wrong; null for a file that was not refused
 */
export async function stopOnRefused(ctx: Context, name: string, isNew: boolean): Promise<string | null> {
  return ctx.db.transaction(async (sql) => {
    if ((await lockAchFile(sql, name)) !== 'refused') return null;
    const finding = `bank file ${name} was refused, its payouts have failed, and now the bank has executed it: ask the bank, and once it is certain book it (bursar payout recover ${name} --executed)`;
    if (!isNew && (await wasCleared(sql, finding))) return null;
    await tripBreaker(sql, { name: 'payouts', by: ['INV-20'], findings: [finding], atMs: ctx.ports.clock.now() });
    return finding;
  });
}

/**
 * The bank executes nothing of a file: each of its payouts has failed, and gets back exactly what it took. Those that were completed before
 * the bank said so come back like returns, at the rate of this moment. `unpriced`: there is no rate, it must be booked later.
 */
export async function bookRefusal(ctx: Context, name: string, reason: string): Promise<'booked' | 'unknown' | 'unpriced'> {
  const state = await refuseFile(ctx, name, reason);
  if (state === null) return 'unknown';
  if (state !== 'over') return 'booked';
  for (const { trace, cents } of await readAchEntries(ctx.db, name)) {
    const returned = { trace, cents, reference: '', code: 'refused', error: `the bank refused the file: ${reason}` };
    if ((await bookReturn(ctx, returned, { stopsOnUnknown: true })) === 'unpriced') return 'unpriced';
  }
  return 'booked';
}

/** The state in which the file was; null when there is none. */
function refuseFile(ctx: Context, name: string, reason: string): Promise<AchFileState | null> {
  return ctx.db.transaction(async (sql) => {
    const state = await lockAchFile(sql, name);
    if (state === null || state === 'refused' || state === 'over') return state;
    const payouts = await asBooked(sql, await lockPayouts(sql, await achPayoutIds(sql, name)));
    const atMs = ctx.ports.clock.now();
    for (const payout of payouts.filter(isSourced)) {
      // a return before the refusal proves that the bank had executed it
      if (payout.status !== 'processing') continue;
      const booked = await bookedStepsOf(sql, 'po', payout.id);
      await post(ctx, sql, payout.id, achRefusedEntries(payout, await lockOwed(sql, payout), booked));
      const error = `the bank refused the file: ${reason}`;
      await movePayout(sql, payout, 'refused', { error, givenBack: payout.source.amount, atMs });
    }
    const lost = await readAchLost(sql, name);
    const booked = await bookedStepsOf(sql, 'unknown', `usd:${name}`);
    if (lost > 0n) await postEntries(sql, [{ entry: bankOutflowUndoneEntry(name, lost, booked), transactionId: null, atMs }]);
    await endAchFile(sql, name, 'refused');
    await wakeHeldJob(sql);
    return state;
  });
}

/** The bank returns nothing of a file any more: what has not come back is completed. */
export async function completeFile(ctx: Context, name: string): Promise<void> {
  await ctx.db.transaction(async (sql) => {
    if ((await lockAchFile(sql, name)) !== 'acked') return;
    const payouts = (await asBooked(sql, await lockPayouts(sql, await achPayoutIds(sql, name)))).filter(isSourced);
    const atMs = ctx.ports.clock.now();
    const open = payouts.filter(({ status }) => status === 'processing');
    for (const payout of open) await post(ctx, sql, payout.id, [achCompleteEntry(payout)]);
    await writePayoutChanges(
      sql,
      open.map((payout) => ({
        payout,
        from: ['processing', 'batched'] as const,
        event: 'settled' as const,
        completedAtMs: atMs,
      })),
      atMs,
    );
    await endAchFile(sql, name, 'over');
  });
}

/** How a bank names one of our entries. */
type Named = {
  /** The trace number that we had given it. */
  readonly trace: string;
  /** What names the payout in it (core/ach/own-file); empty where nothing does. */
  readonly reference: string;
};
export type Returned = Named & {
  /** R01 and so on. */
  readonly code: string;
  readonly cents: bigint;
  /** What the merchant reads. */
  readonly error: string;
};
/** `unpriced`: there is no rate to buy crypto at, it must be booked later. `unknown`: nothing of ours, payouts are stopped. */
export type BookedReturn = 'booked' | 'again' | 'unpriced' | 'unknown';

/**
 * The bank has sent an entry back, in whatever state its payout is; a second report of the same entry changes nothing. Its dollars, fee
 * included, buy the currency of the source at the median rate of this moment.
 */
export async function bookReturn(
  ctx: Context,
  returned: Returned,
  { stopsOnUnknown }: { readonly stopsOnUnknown: boolean },
): Promise<BookedReturn> {
  return ctx.db.transaction(async (sql) => {
    const { trace, code, cents } = returned;
    const found = await entryMeant(sql, returned);
    if (found !== null && 'byHand' in found) return bookReturnByHand(ctx, sql, found.byHand, returned);
    // in the order in which a file's end locks them
    if (found !== null) await lockAchFile(sql, found.file);
    const row = found === null ? null : await lockPayout(sql, found.payoutId, { wait: true });
    const payout = row === null ? null : await oneAsBooked(sql, row);
    if (found === null || payout === null || !isSourced(payout) || found.cents !== cents) {
      const finding = `the bank returns ${cents} cents of trace number ${trace}, which is not what was paid`;
      if (stopsOnUnknown)
        await tripBreaker(sql, { name: 'payouts', by: ['INV-20'], findings: [finding], atMs: ctx.ports.clock.now() });
      return 'unknown';
    }
    const entry = await readAchEntry(sql, trace, achReference(found.payoutId));
    if (entry?.returned !== null) return 'again';
    const atMs = ctx.ports.clock.now();
    const isOpen = payout.status === 'processing' || payout.status === 'completed';
    if (isOpen && !(await giveBack(ctx, sql, payout, returned))) return 'unpriced';
    await setAchReturned(sql, entry, code, atMs);
    // a return proves that the bank had the file
    const settlesOn = settlementDate(easternTime(atMs).date);
    await setAchAcked(sql, entry.file, { atMs, settlesOn, returnsEndMs: returnsEndMs(settlesOn) });
    return 'booked';
  });
}

/**
 * The entry of a trace number. A database that was put back may have given the number of a file that it has forgotten to another payout: where
 * the bank names a payout that a person has decided, that one is meant.
 */
async function entryMeant(
  sql: Sql,
  { trace, reference, cents }: Named & Pick<Returned, 'cents'>,
): Promise<AchEntry | { readonly byHand: PayoutRow } | null> {
  const entry = await readAchEntry(sql, trace, reference);
  if (reference === '' || (entry !== null && achReference(entry.payoutId) === reference)) return entry;
  const id = (await payoutsByReference(sql, [reference])).get(reference);
  if (id === undefined || !(await isResolved(sql, id))) return entry;
  const payout = await lockPayout(sql, id, { wait: true });
  return payout === null || payout.amount !== cents ? entry : { byHand: payout };
}

/** The file that a return is about; null where it is about none of ours, or about a payout that a person has found paid. */
export async function returnedFile(ctx: Context, returned: Named & Pick<Returned, 'cents'>): Promise<string | null> {
  const found = await ctx.db.transaction((sql) => entryMeant(sql, returned));
  return found === null || 'byHand' in found ? null : found.file;
}

/** Of a payout that a person has found paid, by a file that nobody here knows; one that was found unpaid has its money already. */
async function bookReturnByHand(ctx: Context, sql: Sql, row: PayoutRow, returned: Returned): Promise<BookedReturn> {
  const payout = await oneAsBooked(sql, row);
  if (payout.status !== 'completed' || !isSourced(payout)) return 'again';
  return (await giveBack(ctx, sql, payout, returned)) ? 'booked' : 'unpriced';
}

/** False where there is no rate to buy at. */
async function giveBack(ctx: Context, sql: Sql, payout: Sourced, { code, error }: Returned): Promise<boolean> {
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

/** The bank asks for other details next time: no money moves. False for an entry that is none of ours. */
export async function bookNotice(ctx: Context, notice: Named & { readonly code: string }): Promise<boolean> {
  const entry = await readAchEntry(ctx.db, notice.trace, notice.reference);
  if (entry === null) return false;
  await setAchNotice(ctx.db, entry, notice.code);
  return true;
}

/** The file of a trace number; null for one that is none of ours. */
export async function fileOf(ctx: Context, { trace, reference }: Named): Promise<string | null> {
  return (await readAchEntry(ctx.db, trace, reference))?.file ?? null;
}
