// The entries of bank files: which payout each belongs to, what the bank has said of it, and which payouts have none yet.
import { REFERENCE_LENGTH } from '../../core/ach/own-file.ts';
import type { Sql } from '../postgres/connect.ts';
import { type FiledUntil, isInTime } from './files.ts';

export type AchEntry = {
  readonly trace: string;
  readonly file: string;
  readonly payoutId: string;
  readonly cents: bigint;
  readonly returned: string | null;
};

/** What is one entry: a trace number may stand in another file too. */
type EntryPlace = Pick<AchEntry, 'trace' | 'file'>;

/** The payouts by ach that these references of bank files name (core/ach/own-file), by reference. */
export async function payoutsByReference(sql: Sql, references: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql.query<{ reference: string; id: string }>({
    name: 'payouts_by_reference',
    text: `select r.reference, p.id from unnest($1::text[]) as r(reference) join payouts p on p.method = 'ach' and upper(right(p.id, ${REFERENCE_LENGTH})) = r.reference`,
    values: [references],
  });
  return new Map(rows.map(({ reference, id }) => [reference, id]));
}

/** The payouts of a file, in the order in which every writer locks them; `kept`: without those that the bank has sent back. */
export async function achPayoutIds(sql: Sql, file: string, which: 'all' | 'kept' = 'all'): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payout_id: string }>({
    name: 'ach_payout_ids',
    text: 'select payout_id from ach_entries where file = $1 and ($2 or returned is null) order by payout_id',
    values: [file, which === 'all'],
  });
  return rows.map((row) => row.payout_id);
}

/**
 * The entry of a trace number; null when there is none. Numbers come again after years: of several the one of the payout that is named, else
 * the newest.
 * @param reference what names the payout in a bank file; empty where nothing does
 */
export async function readAchEntry(sql: Sql, trace: string, reference: string): Promise<AchEntry | null> {
  const { rows } = await sql.query<{ trace: string; file: string; payout_id: string; cents: string; returned: string | null }>({
    name: 'read_ach_entry',
    text: `select e.trace, e.file, e.payout_id, e.cents, e.returned from ach_entries e join ach_files f on f.name = e.file
            where e.trace = $1 order by (upper(right(e.payout_id, ${REFERENCE_LENGTH})) = $2) desc, f.created_at desc limit 1`,
    values: [trace, reference],
  });
  const [row] = rows;
  return row === undefined
    ? null
    : { trace: row.trace, file: row.file, payoutId: row.payout_id, cents: BigInt(row.cents), returned: row.returned };
}

/** The entries of a file, in its order. */
export async function readAchEntries(
  sql: Sql,
  file: string,
): Promise<readonly { readonly trace: string; readonly payoutId: string; readonly cents: bigint }[]> {
  const { rows } = await sql.query<{ trace: string; payout_id: string; cents: string }>({
    name: 'read_ach_entries',
    text: 'select trace, payout_id, cents from ach_entries where file = $1 order by trace',
    values: [file],
  });
  return rows.map(({ trace, payout_id: payoutId, cents }) => ({ trace, payoutId, cents: BigInt(cents) }));
}

/** Whether the bank has sent an entry of a file back. */
export async function hasReturned(sql: Sql, file: string): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>({
    name: 'has_ach_returned',
    text: `select exists (select from ach_entries where file = $1 and returned is not null)
               or exists (select from lost_ach_entries where file = $1 and returned is not null) as found`,
    values: [file],
  });
  return rows[0]?.found === true;
}

/** Whether an operator has booked that the bank has executed a file which it had refused. */
export async function wasExecuted(sql: Sql, file: string): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>({
    name: 'was_ach_executed',
    text: `select exists (select from ledger.entry where key = 'unknown:usd:' || $1::text || ':executed')
               or exists (select from ach_entries e join ledger.entry n on n.key = 'po:' || e.payout_id || ':executed' where e.file = $1) as found`,
    values: [file],
  });
  return rows[0]?.found === true;
}

/** Whether one of these trace numbers stands in a file that the bank does not certainly have, as far as this database knows. */
export async function areInOpenFile(sql: Sql, entries: readonly Pick<AchEntry, 'trace'>[]): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>({
    name: 'are_in_open_ach_file',
    text: `select exists (select from ach_files f join ach_entries e on e.file = f.name where f.state in ('built', 'uploading', 'unknown') and e.trace = any ($1)) as found`,
    values: [entries.map(({ trace }) => trace)],
  });
  return rows[0]?.found === true;
}

/** Files that pay more than their entries and what is booked as lost: an operator has not booked the rest yet. */
export async function unbookedAchFiles(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ name: string }>({
    name: 'unbooked_ach_files',
    text: `select f.name from unknown_movements u join ach_files f on f.name = u.txid
            where u.currency = 'USD' and u.resolved_at is null
              and f.credits - f.lost <> (select coalesce(sum(e.cents), 0) from ach_entries e where e.file = f.name)`,
    values: [],
  });
  return rows.map(({ name }) => name);
}

/** How many cents of a file go to nobody whom this database knows. */
export async function setAchLost(sql: Sql, file: string, cents: bigint): Promise<void> {
  await sql.query({ name: 'set_ach_lost', text: 'update ach_files set lost = $2 where name = $1', values: [file, cents] });
}

/** Those that an operator has found paid, and that no file was found for since. */
export async function decidedAsPaid(sql: Sql, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'ach_decided_as_paid',
    text: `select p.id from payouts p where p.id = any ($1) and p.resolved and p.status = 'completed'
              and not exists (select from ach_entries e where e.payout_id = p.id) and not exists (select from ledger.entry e where e.key = 'adopted:' || p.id)`,
    values: [ids],
  });
  return new Set(rows.map(({ id }) => id));
}

/** What was booked as lost of a file, and did not come back, in cents. */
export async function readAchLost(sql: Sql, file: string): Promise<bigint> {
  const { rows } = await sql.query<{ lost: string }>({
    name: 'read_ach_lost',
    text: `select lost - (select coalesce(sum(cents), 0) from lost_ach_entries where file = name and returned is not null) as lost
             from ach_files where name = $1`,
    values: [file],
  });
  return BigInt(rows[0]?.lost ?? 0);
}

/**
 * Notes that the bank has returned an entry.
 * @param code of NACHA's returns, as R03
 */
export async function setAchReturned(sql: Sql, entry: EntryPlace, code: string, atMs: number): Promise<void> {
  await sql.query({
    name: 'set_ach_returned',
    text: 'update ach_entries set returned = $3, returned_at = $4 where trace = $1 and file = $2',
    values: [entry.trace, entry.file, code, new Date(atMs)],
  });
}

/**
 * Notes a notification of change.
 * @param code of NACHA's, as C01; the payout itself stays
 */
export async function setAchNotice(sql: Sql, { trace, file }: EntryPlace, code: string): Promise<void> {
  await sql.query({
    name: 'set_ach_notice',
    text: 'update ach_entries set notice = $3 where trace = $1 and file = $2',
    values: [trace, file, code],
  });
}

/** The bytes of a file as they are stored; null when there is none of this name. */
export async function readAchBytes(sql: Sql, file: string): Promise<Uint8Array | null> {
  const { rows } = await sql.query<{ bytes: Buffer }>({
    name: 'read_ach_bytes',
    text: 'select bytes from ach_files where name = $1',
    values: [file],
  });
  return rows[0]?.bytes ?? null;
}

/** Payouts that were requested until then and are in no file. */
export async function unfiledAchPayouts(sql: Sql, { untilMs, nowMs }: FiledUntil): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'unfiled_ach_payouts',
    text: `select id from payouts where method = 'ach' and step in ('held', 'queued') and ${isInTime('created_at', '$1', '$2::timestamptz')} order by id`,
    values: [new Date(untilMs), new Date(nowMs)],
  });
  return rows.map(({ id }) => id);
}

/** Payouts that are in no file. */
export async function waitingAchPayouts(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'waiting_ach_payouts',
    text: `select id from payouts where method = 'ach' and step in ('held', 'queued') order by id`,
    values: [],
  });
  return rows.map(({ id }) => id);
}
