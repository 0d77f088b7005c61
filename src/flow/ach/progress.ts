// What the bank says of files and entries, one database transaction for each: it has a file, refuses one, returns an entry, or its days for
// returns are over. Only that ends a payout; a time-out never does.
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import { achReference } from '../../core/ach/own-file.ts';
import { achCompleteEntry, achRefusedEntries } from '../../core/payouts/ach-postings.ts';
import {
  type AchEntry,
  achPayoutIds,
  payoutsByReference,
  readAchEntries,
  readAchEntry,
  setAchNotice,
  setAchReturned,
} from '../../store/ach/entries.ts';
import { type AchFileState, endAchFile, lockAchFile, lockAchFiles, setAchAcked } from '../../store/ach/files.ts';
import { type LostEntry, lostEntriesOf, readLostEntry, setPaidReturned } from '../../store/ach/lost-entries.ts';
import { tripBreaker, wasCleared } from '../../store/ledger/breakers.ts';
import { asBooked, bookedStepsOf, oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { isResolved, lockPayout, lockPayouts, movePayout, type PayoutRow, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { unaskedIn } from './alike-payouts.ts';
import { type BookedReturn, giveBack, isSourced, lockOwed, type Named, post, type Returned } from './give-back.ts';
import { bookLostBack, bookLostReturn, giveBackPaid } from './lost-returns.ts';

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
  const refused = { code: 'refused', error: `the bank refused the file: ${reason}` };
  if (state !== 'over') return giveBackPaid(ctx, name, refused);
  const lost = await lostEntriesOf(ctx.db, name);
  const kept = (await readAchEntries(ctx.db, name)).map((entry) => ({ ...entry, reference: '' }));
  for (const { trace, cents, reference } of [...kept, ...lost])
    if ((await bookReturn(ctx, { trace, cents, reference, ...refused }, { stopsOnUnknown: true })) === 'unpriced')
      return 'unpriced';
  return 'booked';
}

/** The state in which the file was; null when there is none. */
function refuseFile(ctx: Context, name: string, reason: string): Promise<AchFileState | null> {
  return ctx.db.transaction(async (sql) => {
    const state = await lockAchFile(sql, name);
    if (state === null || state === 'refused' || state === 'over') return state;
    await failAll(ctx, sql, name, `the bank refused the file: ${reason}`);
    await bookLostBack(ctx, sql, name);
    return state;
  });
}

/** Each of its payouts has failed, and gets back exactly what it took. The file is locked. */
async function failAll(ctx: Context, sql: Sql, name: string, error: string): Promise<void> {
  const payouts = await asBooked(sql, await lockPayouts(sql, await achPayoutIds(sql, name)));
  const atMs = ctx.ports.clock.now();
  for (const payout of payouts.filter(isSourced)) {
    // a return before the refusal proves that the bank had executed it
    if (payout.status !== 'processing') continue;
    const booked = await bookedStepsOf(sql, 'po', payout.id);
    await post(ctx, sql, payout.id, achRefusedEntries(payout, await lockOwed(sql, payout), booked));
    await movePayout(sql, payout, 'refused', { error, givenBack: payout.source.amount, atMs });
  }
  await endAchFile(sql, name, 'refused');
  await wakeHeldJob(sql);
}

const WITHDRAWN = 'its bank file was not handed over, because it may pay what was paid before: request it again';

/**
 * Withdraws a file that the bank does not have, where one of its payouts goes to the account of an entry of a forgotten file that was booked as lost since
 * it was made: it may be the same. A file cannot be taken apart, so all of its payouts fail; whoever requests that one again, is asked.
 * @returns those because of which; none: it may be handed over
 */
export function withdrawAlike(ctx: Context, name: string): Promise<readonly string[]> {
  return ctx.db.transaction(async (sql) => {
    await lockAchFiles(sql);
    if ((await lockAchFile(sql, name)) !== 'built') return [];
    const alike = await unaskedIn(ctx, sql, name);
    if (alike.length > 0) await failAll(ctx, sql, name, WITHDRAWN);
    return alike;
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
    const { trace, code, cents, reference } = returned;
    const found = await entryMeant(sql, returned);
    if (found !== null && 'byHand' in found) return bookReturnByHand(ctx, sql, found.byHand, returned);
    if (found !== null && 'reference' in found) return bookLostReturn(ctx, sql, found, returned);
    // in the order in which a file's end locks them
    if (found !== null) await lockAchFile(sql, found.file);
    const row = found === null ? null : await lockPayout(sql, found.payoutId, { wait: true });
    const payout = row === null ? null : await oneAsBooked(sql, row);
    if (found === null || payout === null || !isSourced(payout) || found.cents !== cents) {
      const finding = `the bank returns ${cents} cents of trace number ${trace} and names ${reference === '' ? 'nobody' : reference}, which is not what was paid`;
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
 * the bank names a payout that a person has decided, that one is meant; where it names nobody here, what was booked as lost. Where it names any other
 * payout, nobody knows which of the two came back.
 */
async function entryMeant(
  sql: Sql,
  { trace, reference, cents }: Named & Pick<Returned, 'cents'>,
): Promise<AchEntry | LostEntry | { readonly byHand: PayoutRow } | null> {
  const entry = await readAchEntry(sql, trace, reference);
  if (entry !== null && (reference === '' || achReference(entry.payoutId) === reference)) return entry;
  // also where it names a payout that was decided before its file was known
  const lost = await readLostEntry(sql, trace, reference);
  if (lost?.cents === cents) return lost;
  const id = (await payoutsByReference(sql, [reference])).get(reference);
  if (id === undefined) return entry;
  if (!(await isResolved(sql, id))) return null;
  const payout = await lockPayout(sql, id, { wait: true });
  return payout === null || payout.amount !== cents ? null : { byHand: payout };
}

/** The file that a return is about; null where it is about none of ours, or about a payout that a person has found paid. */
export async function returnedFile(ctx: Context, returned: Named & Pick<Returned, 'cents'>): Promise<string | null> {
  const found = await ctx.db.transaction((sql) => entryMeant(sql, returned));
  return found === null || 'byHand' in found ? null : found.file;
}

/** Whether its number or its name is one of ours. */
export async function isAboutOurs(ctx: Context, { trace, reference }: Named): Promise<boolean> {
  return (await readAchEntry(ctx.db, trace, reference)) !== null || (await payoutsByReference(ctx.db, [reference])).size > 0;
}

/** Of a payout that a person has found paid, by a file that nobody here knows; one that was found unpaid has its money already. */
async function bookReturnByHand(ctx: Context, sql: Sql, row: PayoutRow, returned: Returned): Promise<BookedReturn> {
  const payout = await oneAsBooked(sql, row);
  if (payout.status !== 'completed' || !isSourced(payout)) return 'again';
  if (!(await giveBack(ctx, sql, payout, returned))) return 'unpriced';
  await setPaidReturned(sql, payout.id, returned.code);
  return 'booked';
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
