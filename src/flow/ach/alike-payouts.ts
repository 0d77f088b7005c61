// Payouts to an account that a forgotten bank file has paid for somebody whom this database does not know: their merchants, or the settings of
// automatic payouts, may have requested again what was forgotten. Only a person can tell, so they wait; one that is found paid is what was
// booked as lost. The amounts may differ: `all`, and what an automatic payout asks for, follow the price.
import { readBankAccount } from '../../core/ach/bank-account.ts';
import { NachaMalformed, type ReadFile, readNachaFile } from '../../core/ach/nacha-reader.ts';
import { bankAdoptedEntry } from '../../core/payouts/ach-postings.ts';
import { lostQuestions } from '../../core/payouts/lost-questions.ts';
import { Refusal } from '../../core/refusal.ts';
import { openText } from '../../core/sealed-text.ts';
import { achPayoutIds, waitingAchPayouts } from '../../store/ach/entries.ts';
import { type OpenLostEntry, openLostEntries, returnedOf, setPaidBy, storedAchFiles } from '../../store/ach/lost-entries.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { alreadyAsked, dropQuestions, insertQuestion } from '../../store/payouts/after-restore/lost-questions.ts';
import { lockPayouts, type PayoutRow } from '../../store/payouts/payouts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdUnknown } from '../payouts/after-restore/unknown-movements.ts';

type Entry = ReadFile['entries'][number];
type Account = Pick<Entry, 'routing' | 'account'>;
/** With its destination as text that is not sealed. */
type Plain = Pick<PayoutRow, 'id' | 'merchantId' | 'amount' | 'destination'>;

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
export function isFor(ctx: Context, payout: PayoutRow, entry: Account & Pick<Entry, 'cents'>): boolean {
  return payout.amount === entry.cents && goesTo(plain(ctx, payout), entry);
}

const plain = (ctx: Context, payout: PayoutRow): Plain => ({
  ...payout,
  destination: openText(ctx.ports.sealing, payout.destination, payout.id),
});

/** An account as text; null where a destination is none. */
const placeOf = ({ routing, account }: Account): string => `${routing}:${account}`;
function placeOfPayout({ destination }: Plain): string | null {
  const account = readBankAccount(destination);
  return 'problem' in account ? null : placeOf(account);
}
const goesTo = (payout: Plain, entry: Account): boolean => placeOfPayout(payout) === placeOf(entry);

/** Those that may be what these entries have paid wait for an operator. @returns all of them, also those that wait already */
export async function holdAlike(ctx: Context, sql: Sql, entries: readonly Entry[]): Promise<readonly PayoutRow[]> {
  const waiting = await lockPayouts(sql, await waitingAchPayouts(sql));
  const alike = waiting.filter((payout) => entries.some((entry) => goesTo(plain(ctx, payout), entry)));
  await holdUnknown(
    sql,
    alike.map(({ id }) => id),
    ctx.ports.clock.now(),
  );
  return alike;
}

type LostTo = OpenLostEntry & Account;

/** The open lost entries, with the accounts that they went to. */
async function lostTo(ctx: Context, sql: Sql, payoutId: string | null): Promise<readonly LostTo[]> {
  const open = await openLostEntries(sql, payoutId);
  const names = [...new Set(open.map(({ file }) => file))];
  const entries = new Map<string, Map<string, Entry>>();
  for (const [name, bytes] of await storedAchFiles(sql, names))
    entries.set(name, new Map((entriesOf(ctx.ports.sealing.open(bytes, name)) ?? []).map((entry) => [entry.trace, entry])));
  return open.flatMap((lost) => {
    const entry = entries.get(lost.file)?.get(lost.trace);
    return entry === undefined ? [] : [{ ...lost, routing: entry.routing, account: entry.account }];
  });
}

/** Payouts are taken note of until it is about as much as each lost entry to their account has. */
async function ask(ctx: Context, sql: Sql, payouts: readonly Plain[]): Promise<readonly string[]> {
  const pairs = await unasked(ctx, sql, async () => payouts);
  for (const [{ file, trace }, { id }] of pairs) await insertQuestion(sql, id, { currency: 'USD', txid: file, place: trace });
  return pairs.map(([, { id }]) => id);
}

/** @param of asked for only where something is lost */
async function unasked(ctx: Context, sql: Sql, of: () => Promise<readonly Plain[]>) {
  const open = await lostTo(ctx, sql, null);
  if (open.length === 0) return [];
  const payouts = await of();
  const before = await alreadyAsked(
    sql,
    payouts.map(({ id }) => id),
  );
  return lostQuestions(
    open.map((lost) => ({ ...lost, amount: lost.cents, place: placeOf(lost) })),
    payouts.filter(({ id }) => !before.has(id)).map((payout) => ({ ...payout, place: placeOfPayout(payout) ?? '' })),
  );
}

/** Those payouts of a file that {@link holdUnasked} would have wait: it was made before something was booked as lost to their account. */
export async function unaskedIn(ctx: Context, sql: Sql, file: string): Promise<readonly string[]> {
  const inFile = async () => (await lockPayouts(sql, await achPayoutIds(sql, file))).map((payout) => plain(ctx, payout));
  return (await unasked(ctx, sql, inFile)).map(([, { id }]) => id);
}

/** A person is asked about payouts that wait since a file was found. */
export async function askAbout(ctx: Context, sql: Sql, payouts: readonly PayoutRow[]): Promise<void> {
  await ask(
    ctx,
    sql,
    payouts.map((payout) => plain(ctx, payout)),
  );
}

/**
 * Of payouts that are about to be put into a file, those wait for a person that go to the account of a lost entry because of which he was not asked
 * yet about as much as it has.
 * @returns those
 */
export async function holdUnasked(ctx: Context, sql: Sql, payouts: readonly Plain[]): Promise<ReadonlySet<string>> {
  const asked = await ask(ctx, sql, payouts);
  await holdUnknown(sql, asked, ctx.ports.clock.now());
  return new Set(asked);
}

/**
 * A payout by ach was found paid: what was booked as lost for its account, and is no other payout yet, has paid it, and is not lost. The caller has
 * locked the bank's files.
 * @throws Refusal not_resolvable where the bank has sent back what it was asked about, or refused its file
 */
export async function adoptLost(ctx: Context, sql: Sql, payout: PayoutRow): Promise<void> {
  const isAsked = ({ asked }: OpenLostEntry): boolean => asked.some(({ payoutId }) => payoutId === payout.id);
  const open = (await lostTo(ctx, sql, payout.id)).filter(
    (lost) => isAsked(lost) || (lost.isSince && goesTo(plain(ctx, payout), lost)),
  );
  const lost = open.find(isAsked) ?? open.find(({ left }) => left === payout.amount) ?? open.find(({ left }) => left > 0n);
  if (lost === undefined) return refuseReturned(sql, payout.id);
  if (lost.paid === null) await setPaidBy(sql, lost, payout.id);
  else if (!isAsked(lost)) {
    await dropQuestions(sql, [payout.id]);
    await insertQuestion(sql, payout.id, { currency: 'USD', txid: lost.file, place: lost.trace });
  }
  await bookAdopted(ctx, sql, payout, lost.left);
}

async function refuseReturned(sql: Sql, payoutId: string): Promise<void> {
  const back = await returnedOf(sql, payoutId);
  if (back === null) return;
  const how = back.returned === null ? 'refused' : `sent back (${back.returned})`;
  const message = `The bank has ${how} what bank file ${back.file} had for its account: --failed gives its merchant his money.`;
  throw new Refusal('not_resolvable', { message });
}

/** Of the entries of a file those that are no payout's here. @param known its entries as they are stored */
export function unknownOf(entries: readonly Entry[], known: readonly Pick<Entry, 'trace'>[]): readonly Entry[] {
  const traces = new Set(known.map(({ trace }) => trace));
  return entries.filter(({ trace }) => !traces.has(trace));
}

/** What was booked by hand for a payout that an entry has paid stands, and is not lost a second time. @param cents what is left of that entry */
export function bookAdopted(
  ctx: Context,
  sql: Sql,
  { id, amount }: Pick<PayoutRow, 'id' | 'amount'>,
  cents: bigint,
): Promise<void> {
  return postEntries(sql, [{ entry: bankAdoptedEntry(id, amount, cents), transactionId: null, atMs: ctx.ports.clock.now() }]);
}
