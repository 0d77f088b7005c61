// Payouts to an account of which a forgotten bank file has paid as much, for somebody whom this database does not know: their merchants may have
// requested again what was forgotten. Only a person can tell, so they wait; one that is found paid is what was booked as lost.
import { readBankAccount } from '../../core/ach/bank-account.ts';
import { NachaMalformed, type ReadFile, readNachaFile } from '../../core/ach/nacha-reader.ts';
import { adoptedEntry } from '../../core/payouts/postings.ts';
import { openText } from '../../core/sealed-text.ts';
import { adoptedAchPayouts, lostAchFiles, readAchEntries, waitingAchPayouts } from '../../store/ach/entries.ts';
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
  const waiting = await waitingAchPayouts(
    sql,
    entries.map(({ cents }) => cents),
  );
  const alike = (await lockPayouts(sql, waiting)).filter((payout) => entries.some((entry) => isFor(ctx, payout, entry)));
  const ids = alike.map(({ id }) => id);
  await holdUnknown(sql, ids, ctx.ports.clock.now());
  return ids;
}

/** A payout by ach was found paid: what was booked as lost for its account and amount, and is no other payout yet, has paid it, and is not lost. */
export async function adoptLost(ctx: Context, sql: Sql, payout: PayoutRow): Promise<void> {
  await lockAchFiles(sql);
  const files = await lostAchFiles(sql, payout.id);
  let lost = 0;
  for (const { name, bytes } of files) {
    const known = new Set((await readAchEntries(sql, name)).map(({ trace }) => trace));
    const entries = entriesOf(ctx.ports.sealing.open(bytes, name)) ?? [];
    lost += entries.filter((entry) => !known.has(entry.trace) && isFor(ctx, payout, entry)).length;
  }
  const [first] = files;
  if (first === undefined || lost === 0) return;
  const account = openText(ctx.ports.sealing, payout.destination, payout.id);
  const since = { amount: payout.amount, sinceEntry: first.entry };
  const adopted = (await lockPayouts(sql, await adoptedAchPayouts(sql, since))).filter(
    (one) => openText(ctx.ports.sealing, one.destination, one.id) === account,
  );
  if (adopted.length >= lost) return;
  const entry = adoptedEntry(payout.id, { currency: 'USD', amount: payout.amount, against: 'asset:bank:USD' });
  await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}
