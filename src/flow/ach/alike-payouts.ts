// Payouts to an account of which a forgotten bank file has paid as much, for somebody whom this database does not know: their merchants may have
// requested again what was forgotten. Only a person can tell, so they wait; one that is found paid is what was booked as lost.
import { readBankAccount } from '../../core/ach/bank-account.ts';
import { NachaMalformed, type ReadFile, readNachaFile } from '../../core/ach/nacha-reader.ts';
import { adoptedEntry } from '../../core/payouts/postings.ts';
import { openText } from '../../core/sealed-text.ts';
import { adoptedAchPayouts, lostAchFiles, readAchEntries, unfiledAchPayoutsOf } from '../../store/ach/entries.ts';
import { lockAchFiles } from '../../store/ach/files.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { lockPayouts, type PayoutRow } from '../../store/payouts/payouts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdUnknown } from '../payouts/after-restore/unknown-movements.ts';

type Entry = ReadFile['entries'][number];

/** The entries of a bank file; null when its bytes are none. */
export function entriesOf(bytes: Uint8Array): ReadFile['entries'] | null {
  try {
    return readNachaFile(new TextDecoder().decode(bytes)).entries;
  } catch (error) {
    if (error instanceof NachaMalformed) return null;
    throw error;
  }
}

/** Whether an entry of a bank file goes to the account of a payout and is as much. */
export function isFor(ctx: Context, payout: PayoutRow, entry: Pick<Entry, 'routing' | 'account' | 'cents'>): boolean {
  if (payout.amount !== entry.cents) return false;
  const account = readBankAccount(openText(ctx.ports.sealing, payout.destination, payout.id));
  return !('problem' in account) && account.routing === entry.routing && account.account === entry.account;
}

/** Those that may be what these entries have paid wait for an operator. @returns all of them, also those that wait already */
export async function holdAlike(ctx: Context, sql: Sql, entries: readonly Entry[]): Promise<readonly string[]> {
  const amounts = entries.map(({ cents }) => cents);
  const alike = (await lockPayouts(sql, await unfiledAchPayoutsOf(sql, amounts))).filter((payout) =>
    entries.some((entry) => isFor(ctx, payout, entry)),
  );
  const ids = alike.map(({ id }) => id);
  await holdUnknown(sql, ids, ctx.ports.clock.now());
  return ids;
}

/** A payout by ach was found paid: what was booked as lost for its account and amount, and is no other payout yet, has paid it, and is not lost. */
export async function adoptLost(ctx: Context, sql: Sql, payout: PayoutRow): Promise<void> {
  await lockAchFiles(sql);
  const files = await lostAchFiles(sql, payout.id);
  const alike: Entry[] = [];
  for (const { name, bytes } of files) {
    const entries = entriesOf(ctx.ports.sealing.open(bytes, name)) ?? [];
    alike.push(...unknownOf(entries, await readAchEntries(sql, name)).filter((entry) => isFor(ctx, payout, entry)));
  }
  const [[file], [lost]] = [files, alike];
  if (file === undefined || lost === undefined) return;
  const since = { amount: payout.amount, sinceEntry: file.entry };
  const adopted = await lockPayouts(sql, await adoptedAchPayouts(sql, since));
  if (adopted.filter((one) => isFor(ctx, one, lost)).length < alike.length) await bookAdopted(ctx, sql, payout);
}

/** Of the entries of a file those that are no payout's here. @param known its entries as they are stored */
export function unknownOf(entries: readonly Entry[], known: readonly Pick<Entry, 'trace'>[]): readonly Entry[] {
  const traces = new Set(known.map(({ trace }) => trace));
  return entries.filter(({ trace }) => !traces.has(trace));
}

/** What was booked by hand for a payout that a file has paid stands, and is not lost a second time. */
export function bookAdopted(ctx: Context, sql: Sql, { id, amount }: Pick<PayoutRow, 'id' | 'amount'>): Promise<void> {
  const entry = adoptedEntry(id, { currency: 'USD', amount, against: 'asset:bank:USD' });
  return postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}
