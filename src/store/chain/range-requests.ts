// Ranges of address indexes: the address pools request them and the signer gives them, both through rows of the database, since they may
// run on different machines.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Database, Sql } from '../postgres/connect.ts';

/** Notified when a range is requested, and with a request's id when that request is answered. */
export const WANTED = 'address_wanted';
export const GIVEN = 'address_given';
/** The session lock of the signer that gives out addresses for a database. */
export const SIGNER_LOCK = 'signer';

export type AddressRange = { readonly keyId: bigint; readonly xpub: string; readonly firstIndex: number; readonly size: number };

/** Which key of a currency addresses may be derived from now. */
const USABLE = `retired_at is null and (origin = 'imported' or confirmed_at is not null)`;

/**
 * Requests a range of the currency's key in use from the signer.
 * @param id fresh and random, so that no older copy of the database holds an answer to it
 * @returns false when there is no key that addresses may be derived from
 */
export async function askForRange(
  sql: Sql,
  request: { readonly id: string; readonly currency: CurrencyCode; readonly size: number },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'ask_for_range',
    text: `with asked as (
             insert into address_requests (id, currency, size)
               select $1, $2, $3 where exists (select 1 from account_xpubs where currency = $2 and ${USABLE}) returning 1)
           select pg_notify('${WANTED}', '') from asked`,
    values: [request.id, request.currency, request.size],
  });
  return rowCount === 1;
}

/** The answer is still wanted: the signer deletes requests that nobody has renewed for minutes. */
export async function renewRequest(sql: Sql, id: string): Promise<void> {
  await sql.query({
    name: 'renew_request',
    text: `with renewed as (update address_requests set renewed_at = now() where id = $1 and first_index is null returning 1)
           select pg_notify('${WANTED}', '') from renewed`,
    values: [id],
  });
}

/** The answer to a request; it is deleted with the first reading. `unknown`: this database has no such request. */
export async function takeRange(sql: Sql, id: string): Promise<AddressRange | 'waiting' | 'unknown'> {
  const asked = await sql.query<{ answered: boolean }>({
    name: 'look_at_request',
    text: 'select first_index is not null as answered from address_requests where id = $1',
    values: [id],
  });
  const [request] = asked.rows;
  if (request === undefined) return 'unknown';
  if (!request.answered) return 'waiting';
  const { rows } = await sql.query<{ id: bigint; xpub: string; first_index: bigint; size: number }>({
    name: 'take_range',
    text: `with taken as (delete from address_requests where id = $1 and first_index is not null returning account_xpub_id, first_index, size)
           select k.id, k.xpub, taken.first_index, taken.size from taken join account_xpubs k on k.id = taken.account_xpub_id`,
    values: [id],
  });
  const [row] = rows;
  return row === undefined ? 'unknown' : { keyId: row.id, xpub: row.xpub, firstIndex: Number(row.first_index), size: row.size };
}

/** The currencies of which this database has given out addresses: a process that starts will need some of them again. */
export async function currenciesInUse(sql: Sql): Promise<readonly CurrencyCode[]> {
  const { rows } = await sql.query<{ currency: CurrencyCode }>({
    name: 'currencies_in_use',
    text: `select currency from account_xpubs where ${USABLE} and next_index > start_index`,
    values: [],
  });
  return rows.map((row) => row.currency);
}

export type OpenRequest = {
  readonly id: string;
  readonly size: number;
  readonly currency: CurrencyCode;
  /** The key in use; `nextIndex` is the first index that this database has not given out. */
  readonly key: {
    readonly id: bigint;
    readonly xpub: string;
    readonly origin: 'signer' | 'imported';
    readonly nextIndex: number;
  };
};

const FORGOTTEN_AFTER = '5 minutes';

/** The requests that are still wanted and have a key, the oldest first. Deletes those that are no longer wanted. */
export async function openRequests(sql: Sql): Promise<readonly OpenRequest[]> {
  await sql.query({
    name: 'forget_requests',
    text: `delete from address_requests where renewed_at < now() - interval '${FORGOTTEN_AFTER}'`,
    values: [],
  });
  const { rows } = await sql.query<{
    id: string;
    size: number;
    currency: CurrencyCode;
    key_id: bigint;
    xpub: string;
    origin: 'signer' | 'imported';
    next_index: bigint;
  }>({
    name: 'open_requests',
    text: `select r.id, r.size, r.currency, k.id as key_id, k.xpub, k.origin, k.next_index
             from address_requests r join account_xpubs k on k.currency = r.currency and k.${USABLE}
            where r.first_index is null order by r.asked_at`,
    values: [],
  });
  return rows.map((row) => ({
    id: row.id,
    size: row.size,
    currency: row.currency,
    key: { id: row.key_id, xpub: row.xpub, origin: row.origin, nextIndex: Number(row.next_index) },
  }));
}

export type SkippedCause = 'database_behind' | 'journal_lost' | 'journal_behind';
export type Grant = {
  readonly request: OpenRequest;
  readonly firstIndex: number;
  readonly lineage: string;
  readonly counter: number;
  /** Why the range does not begin where the database says; null = only a range was lost on the way, which needs no report. */
  readonly skipped: SkippedCause | null;
};

/**
 * Answers a request. The range is already in the signer's journal.
 * @returns false when the key's counter has moved meanwhile, or the key is no longer in use: nothing was written
 */
export function giveRange(db: Database, grant: Grant): Promise<boolean> {
  const { request, firstIndex } = grant;
  const { key } = request;
  return db.transaction(async (sql) => {
    const moved = await sql.query({
      name: 'move_key',
      text: `update account_xpubs set next_index = $3 where id = $1 and next_index = $2 and ${USABLE}`,
      values: [key.id, key.nextIndex, firstIndex + request.size],
    });
    if (moved.rowCount !== 1) return false;
    if (grant.skipped !== null && firstIndex > key.nextIndex) {
      await noteSkipped(sql, { keyId: key.id, first: key.nextIndex, end: firstIndex, cause: grant.skipped });
    }
    await markJournal(sql, grant);
    await sql.query({
      name: 'answer_request',
      text: `with answered as (update address_requests set account_xpub_id = $2, first_index = $3 where id = $1 and first_index is null returning 1)
             select pg_notify('${GIVEN}', $1) from answered`,
      values: [request.id, key.id, firstIndex],
    });
    return true;
  });
}

/** Records which journal has last changed what this database gives out. */
export async function markJournal(sql: Sql, mark: { readonly lineage: string; readonly counter: number }): Promise<void> {
  await sql.query({
    name: 'mark_journal',
    text: `insert into signer_journal (lineage, counter) values ($1, $2)
             on conflict (one) do update set lineage = excluded.lineage, counter = excluded.counter, written_at = now()`,
    values: [mark.lineage, mark.counter],
  });
}

/** The mark of the journal that has last given out indexes for this database; null before the first. */
export async function readJournalMark(sql: Sql): Promise<{ readonly lineage: string; readonly counter: number } | null> {
  const { rows } = await sql.query<{ lineage: string; counter: bigint }>({
    name: 'read_journal_mark',
    text: 'select lineage, counter from signer_journal',
    values: [],
  });
  return rows[0] === undefined ? null : { lineage: rows[0].lineage, counter: Number(rows[0].counter) };
}

/** Whether a request exists and is not answered. */
export async function isOpen(sql: Sql, id: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'is_request_open',
    text: 'select 1 from address_requests where id = $1 and first_index is null',
    values: [id],
  });
  return rowCount === 1;
}

/** Raises a key's counter to an index, if it is below it. `cause` null: nothing between them needs a report. */
export async function raiseKey(
  sql: Sql,
  raise: { readonly keyId: bigint; readonly from: number; readonly to: number; readonly cause: SkippedCause | null },
): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'raise_key',
    text: 'update account_xpubs set next_index = $3 where id = $1 and next_index = $2 and next_index < $3',
    values: [raise.keyId, raise.from, raise.to],
  });
  if (rowCount === 1 && raise.cause !== null) {
    await noteSkipped(sql, { keyId: raise.keyId, first: raise.from, end: raise.to, cause: raise.cause });
  }
}

type Skipped = { readonly keyId: bigint; readonly first: number; readonly end: number; readonly cause: SkippedCause };

async function noteSkipped(sql: Sql, { keyId, first, end, cause }: Skipped): Promise<void> {
  await sql.query({
    name: 'note_skipped',
    text: 'insert into skipped_addresses (account_xpub_id, first_index, end_index, cause) values ($1, $2, $3, $4)',
    values: [keyId, first, end, cause],
  });
}
