// The chain of hashes over the ledger (ledger.link): which entries each link covers, and their hash as the database computes it now.
import type { Sql } from '../postgres/connect.ts';

export type LedgerLink = {
  readonly number: bigint;
  /** The last entry that it covers. */
  readonly lastEntry: bigint;
  readonly hash: Uint8Array;
  /** By each key that has vouched for it. */
  readonly seals: readonly Uint8Array[];
};

/** For how long the writers of entries may be held up. */
const WAIT_MS = 250;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * The newest entry below which none is still to be committed. Must be the only thing its database transaction does: it holds up whoever books.
 * @returns null when others were booking all the time
 */
export async function settledEntry(sql: Sql): Promise<bigint | null> {
  await sql.query({ text: `set local lock_timeout = '${WAIT_MS}ms'` });
  try {
    const { rows } = await sql.query<{ id: bigint }>({
      name: 'settled_entry',
      text: 'select ledger.settled_entry() as id',
      values: [],
    });
    return rows[0]?.id ?? 0n;
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) return null;
    throw error;
  }
}

/** Links after one, in their order. @param after 0 = from the first one on */
export async function readLinks(sql: Sql, after: bigint, limit: number): Promise<readonly LedgerLink[]> {
  const { rows } = await sql.query<{ number: bigint; last_entry: bigint; hash: Buffer; seals: Buffer[] }>({
    name: 'read_ledger_links',
    text: `select number, last_entry, hash, array(select s.seal from ledger.link_seal s where s.number = l.number) as seals
             from ledger.link l where number > $1 order by number limit $2`,
    values: [after, limit],
  });
  return rows.map((row) => ({ number: row.number, lastEntry: row.last_entry, hash: row.hash, seals: row.seals }));
}

/** Null when there is none. */
export async function lastLink(sql: Sql): Promise<LedgerLink | null> {
  const { rows } = await sql.query<{ number: bigint }>({
    name: 'last_ledger_link',
    text: 'select max(number) as number from ledger.link having max(number) is not null',
    values: [],
  });
  const number = rows[0]?.number;
  return number === undefined ? null : ((await readLinks(sql, number - 1n, 1))[0] ?? null);
}

/** The entry at which a link ends that begins after one and covers at most this many; null when there is none up to the last. */
export async function linkEnd(sql: Sql, after: bigint, upTo: bigint, most: number): Promise<bigint | null> {
  const { rows } = await sql.query<{ id: bigint | null }>({
    name: 'ledger_link_end',
    text: 'select max(id) as id from (select id from ledger.entry where id > $1 and id <= $2 order by id limit $3) q',
    values: [after, upTo, most],
  });
  return rows[0]?.id ?? null;
}

/** What the entries after one, up to another, are now. */
export async function linkHash(sql: Sql, before: Uint8Array, after: bigint, upTo: bigint): Promise<Buffer> {
  const { rows } = await sql.query<{ hash: Buffer }>({
    name: 'ledger_link_hash',
    text: 'select ledger.link_hash($1, $2, $3) as hash',
    values: [before, after, upTo],
  });
  return (rows[0] as { hash: Buffer }).hash;
}

/** Nothing happens when another worker has written one of this number. */
export async function insertLink(
  sql: Sql,
  { number, lastEntry, hash, seal }: Omit<LedgerLink, 'seals'> & { readonly seal: Uint8Array },
  atMs: number,
): Promise<void> {
  await sql.query({
    name: 'insert_ledger_link',
    text: 'select ledger.add_link($1, $2, $3, $4, $5)',
    values: [number, lastEntry, hash, seal, new Date(atMs)],
  });
}

/** One more seal of a link. */
export async function addLinkSeal(sql: Sql, number: bigint, seal: Uint8Array): Promise<void> {
  await sql.query({
    name: 'add_ledger_link_seal',
    text: 'select ledger.add_link_seal($1, $2)',
    values: [number, seal],
  });
}
