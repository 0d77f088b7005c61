// Bank files and their entries: stored with their payouts before the bank gets them, leased by one worker at a time, and what the bank has said
// of them.
import type { CurrencyCode } from '../../core/currency.ts';
import { FURTHEST, isPast } from '../payouts/batch-rows.ts';
import type { Sql } from '../postgres/connect.ts';

/** built → uploading → acked → over; unknown while the bank must say; refused: it executes nothing of it. */
export type AchFileState = 'built' | 'uploading' | 'unknown' | 'acked' | 'refused' | 'over';
export type AchFile = {
  readonly name: string;
  readonly state: AchFileState;
  readonly bytes: Uint8Array;
  readonly sha256: Uint8Array;
  readonly createdAtMs: number;
  readonly leaseEpoch: bigint;
};

/** A payout that waits for a file, with what its API has signed. */
export type QueuedAchPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly sourceCurrency: CurrencyCode;
  readonly sourceAmount: bigint;
  readonly destination: string;
  readonly businessName: string;
  readonly intentKey: string;
  readonly intent: Buffer;
  readonly createdAtMs: number;
  readonly sequence: number;
};

/** Only one worker at a time makes files. Held until the database transaction ends. */
export async function lockAchFiles(sql: Sql): Promise<void> {
  await sql.query({ name: 'lock_ach_files', text: `select pg_advisory_xact_lock(hashtext('ach files'))`, values: [] });
}

/** When payouts must have been requested to be in a file, and the time now. */
export type FiledUntil = { readonly untilMs: number; readonly nowMs: number };

/** SQL: a time is not after the one until which payouts are put into a file; what is dated later than now was so by a clock that was fast. */
export const isInTime = (column: string, until: string, now: string): string =>
  `(${column} <= ${until} or ${column} > ${now} + ${FURTHEST})`;

/** Locks payouts that wait for a file, and for nothing else, since a time, oldest first; one whose merchant owes something stays where it is. */
export async function lockQueuedAch(
  sql: Sql,
  wanted: FiledUntil & { readonly limit: number },
): Promise<readonly QueuedAchPayout[]> {
  const { rows } = await sql.query<{
    id: string;
    merchant_id: bigint;
    amount: string;
    fee_max: string;
    source_currency: CurrencyCode;
    source_amount: string;
    destination: string;
    business_name: string;
    intent_key: string;
    intent: Buffer;
    created_at: Date;
    sequence: number;
  }>({
    name: 'lock_queued_ach',
    text: `select p.id, p.merchant_id, p.amount, p.fee_max, p.source_currency, p.source_amount, p.destination, m.business_name, p.intent_key, p.intent,
                  p.created_at, p.sequence
             from payouts p join merchants m on m.id = p.merchant_id
            where p.step = 'queued' and p.method = 'ach' and ${isInTime('p.created_at', '$1', '$3::timestamptz')}
              and not exists (select from events e where e.object_id = p.id and e.type = 'payout.processing' and not ${isInTime('e.at', '$1', '$3::timestamptz')})
              and not exists (select from ledger.account a join ledger.balance b on b.account_id = a.id
                               where a.merchant_id = p.merchant_id and a.kind = 'receivable' and b.amount > 0)
            order by p.created_at, p.id limit $2 for update of p skip locked`,
    values: [new Date(wanted.untilMs), wanted.limit, new Date(wanted.nowMs)],
  });
  return rows.map((row) => ({
    id: row.id,
    merchantId: row.merchant_id,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    sourceCurrency: row.source_currency,
    sourceAmount: BigInt(row.source_amount),
    destination: row.destination,
    businessName: row.business_name,
    intentKey: row.intent_key,
    intent: row.intent,
    createdAtMs: row.created_at.getTime(),
    sequence: row.sequence,
  }));
}

/** The names of all files, and the modifiers that a day has used. */
export async function readAchNames(sql: Sql): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ name: string }>({ name: 'ach_names', text: 'select name from ach_files', values: [] });
  return new Set(rows.map(({ name }) => name));
}

/** The hash (hex) of each file, by name. */
export async function readAchHashes(sql: Sql): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql.query<{ name: string; sha256: string }>({
    name: 'ach_hashes',
    text: `select name, encode(sha256, 'hex') as sha256 from ach_files`,
    values: [],
  });
  return new Map(rows.map(({ name, sha256 }) => [name, sha256]));
}

/** When the last look of a driver began that it has finished; null = none has. */
export async function lastAchLook(sql: Sql): Promise<number | null> {
  const { rows } = await sql.query<{ begun_at: Date }>({
    name: 'last_ach_look',
    text: 'select begun_at from bank_reads',
    values: [],
  });
  return rows[0]?.begun_at.getTime() ?? null;
}

/**
 * Stores a bank file with its entries before anybody gets it: bytes, their SHA-256, credits in cents, days as `yyyy-mm-dd`. `unknown`: it
 * was found at the bank, made by a database that was lost.
 */
export async function insertAchFile(
  sql: Sql,
  file: {
    readonly name: string;
    readonly day: string;
    readonly modifier: string;
    readonly bytes: Uint8Array;
    readonly sha256: Uint8Array;
    readonly credits: bigint;
    readonly state: 'built' | 'unknown';
    readonly settlesOn: string;
    readonly returnsEndMs: number;
    readonly atMs: number;
    readonly entries: readonly { readonly trace: string; readonly payoutId: string; readonly cents: bigint }[];
  },
): Promise<void> {
  await sql.query({
    name: 'insert_ach_file',
    text: `with made as (
             insert into ach_files (name, day, modifier, bytes, sha256, credits, state, settles_on, returns_end, created_at)
               values ($1, $2::date, $3, $4, $5, $6, $13, $7::date, $8, $9) returning name)
           insert into ach_entries (trace, file, payout_id, cents)
             select t.trace, made.name, t.payout_id, t.cents from made, unnest($10::text[], $11::text[], $12::numeric[]) as t(trace, payout_id, cents)`,
    values: [
      file.name,
      file.day,
      file.modifier,
      file.bytes,
      file.sha256,
      file.credits,
      file.settlesOn,
      new Date(file.returnsEndMs),
      new Date(file.atMs),
      file.entries.map((entry) => entry.trace),
      file.entries.map((entry) => entry.payoutId),
      file.entries.map((entry) => entry.cents),
      file.state,
    ],
  });
}

/** Takes the lease of a file that the bank does not certainly have; its epoch rises with every lease. Null when there is none. */
export async function leaseAchFile(
  sql: Sql,
  lease: { readonly owner: string; readonly nowMs: number; readonly untilMs: number; readonly not: readonly string[] },
): Promise<AchFile | null> {
  type Row = Omit<AchFile, 'leaseEpoch' | 'createdAtMs'> & { readonly lease_epoch: bigint; readonly created_at: Date };
  const { rows } = await sql.query<Row>({
    name: 'lease_ach_file',
    text: `update ach_files set lease_owner = $1, lease_epoch = lease_epoch + 1, lease_until = $3
            where name = (select name from ach_files
                           where state in ('built', 'uploading', 'unknown') and (lease_until is null or ${isPast('lease_until', '$2')}) and name <> all ($4)
                           order by created_at limit 1 for update skip locked)
            returning name, state, bytes, sha256, lease_epoch, created_at`,
    values: [lease.owner, new Date(lease.nowMs), new Date(lease.untilMs), lease.not],
  });
  const [row] = rows;
  return row === undefined ? null : { ...row, leaseEpoch: row.lease_epoch, createdAtMs: row.created_at.getTime() };
}

/**
 * Gives back the lease of a file, unless another process has taken it since.
 * @param trouble what hindered the hand-over, for the operator; null = nothing
 */
export async function endAchLease(sql: Sql, file: Pick<AchFile, 'name' | 'leaseEpoch'>, trouble: string | null): Promise<void> {
  await sql.query({
    name: 'end_ach_lease',
    text: 'update ach_files set lease_until = null, lease_owner = null, trouble = $3 where name = $1 and lease_epoch = $2',
    values: [file.name, file.leaseEpoch, trouble],
  });
}

/** Moves a file on under a lease; false when another worker has it by now, or it is in another state. */
export async function moveAchFile(
  sql: Sql,
  file: Pick<AchFile, 'name' | 'leaseEpoch'>,
  from: AchFileState,
  to: AchFileState,
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'move_ach_file',
    text: 'update ach_files set state = $4 where name = $1 and lease_epoch = $2 and state = $3',
    values: [file.name, file.leaseEpoch, from, to],
  });
  return rowCount === 1;
}

/** The bank has it: evidence, whoever asked. */
export async function setAchAcked(
  sql: Sql,
  name: string,
  at: { readonly atMs: number; readonly settlesOn: string; readonly returnsEndMs: number },
): Promise<boolean> {
  const { rows } = await sql.query<{ known: boolean }>({
    name: 'set_ach_acked',
    text: `with acked as (
             update ach_files set state = 'acked', handed_at = $2, settles_on = greatest(settles_on, $3::date), returns_end = greatest(returns_end, $4)
              where name = $1 and state in ('built', 'uploading', 'unknown'))
           select exists (select from ach_files where name = $1) as known`,
    values: [name, new Date(at.atMs), at.settlesOn, new Date(at.returnsEndMs)],
  });
  return rows[0]?.known === true;
}

/** The bank has said that the days of returns are over. */
export async function setAchOver(sql: Sql, name: string): Promise<void> {
  await sql.query({ name: 'set_ach_over', text: 'update ach_files set is_over = true where name = $1', values: [name] });
}

/** The state of a file, and whether it has certainly lain where the bank takes it from; null when there is none of this name. */
export async function readAchState(
  sql: Sql,
  name: string,
): Promise<{ readonly state: AchFileState; readonly isHandedOver: boolean; readonly createdAtMs: number } | null> {
  const { rows } = await sql.query<{ state: AchFileState; handed: boolean; created_at: Date }>({
    name: 'read_ach_state',
    text: 'select state, handed_at is not null as handed, created_at from ach_files where name = $1',
    values: [name],
  });
  const [row] = rows;
  return row === undefined ? null : { state: row.state, isHandedOver: row.handed, createdAtMs: row.created_at.getTime() };
}

/** Locks a file; its state, null when there is none of this name. */
export async function lockAchFile(sql: Sql, name: string): Promise<AchFileState | null> {
  const { rows } = await sql.query<{ state: AchFileState }>({
    name: 'lock_ach_file',
    text: 'select state from ach_files where name = $1 for update',
    values: [name],
  });
  return rows[0]?.state ?? null;
}

/** Nothing changes at a file any more: the bank has refused it, or its days of returns are over. */
export async function endAchFile(sql: Sql, name: string, state: 'refused' | 'over'): Promise<void> {
  await sql.query({ name: 'end_ach_file', text: 'update ach_files set state = $2 where name = $1', values: [name, state] });
}

/** Files that the bank has and whose entries it no longer returns. */
export async function endedAchFiles(sql: Sql, nowMs: number): Promise<readonly string[]> {
  const { rows } = await sql.query<{ name: string }>({
    name: 'ended_ach_files',
    text: `select name from ach_files where state = 'acked' and (is_over or returns_end <= $1) order by created_at`,
    values: [new Date(nowMs)],
  });
  return rows.map(({ name }) => name);
}

/** Records that a look which began at this time is over. */
export async function noteAchLook(sql: Sql, beganMs: number, setAside: readonly string[] | null): Promise<void> {
  await sql.query({
    name: 'note_ach_look',
    text: `insert into bank_reads as l (begun_at, set_aside) values ($1, coalesce($2::text[], '{}'))
             on conflict (one_row) do update set
               begun_at = case when l.begun_at > excluded.begun_at + interval '1 hour' then excluded.begun_at else greatest(l.begun_at, excluded.begun_at) end,
               set_aside = coalesce($2::text[], l.set_aside)`,
    values: [new Date(beganMs), setAside],
  });
}

/** Whether a driver has finished a look that began at or after this time. */
export async function isAchLooked(sql: Sql, sinceMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ looked: boolean }>({
    name: 'is_ach_looked',
    text: 'select exists (select from bank_reads where begun_at >= $1) as looked',
    values: [new Date(sinceMs)],
  });
  return rows[0]?.looked === true;
}

/** What the last look has set aside of the bank's reports, one sentence each. */
export async function readSetAside(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ set_aside: string[] }>({
    name: 'read_bank_set_aside',
    text: 'select set_aside from bank_reads',
    values: [],
  });
  return rows[0]?.set_aside ?? [];
}
