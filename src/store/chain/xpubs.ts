// The account-level public keys that receiving addresses are derived from, one in use per currency: the signer's own, and imported ones
// that are kept elsewhere.
import { END_OF_INDEXES, NEEDED_INDEXES } from '../../core/account-key.ts';
import type { CurrencyCode, UtxoCode } from '../../core/currency.ts';
import type { Database, Sql } from '../postgres/connect.ts';

export type StoredKey = {
  readonly id: bigint;
  readonly currency: CurrencyCode;
  /** In its canonical form. */
  readonly xpub: string;
  readonly origin: 'signer' | 'imported';
  /** Where its indexes begin in this database. */
  readonly startIndex: number;
  /** The first index that was never given out. */
  readonly nextIndex: number;
  readonly createdAt: Date;
  readonly confirmedAt: Date | null;
  /** Null for the key in use. */
  readonly retiredAt: Date | null;
};

type Row = {
  id: bigint;
  currency: CurrencyCode;
  xpub: string;
  origin: 'signer' | 'imported';
  start_index: bigint;
  next_index: bigint;
  created_at: Date;
  confirmed_at: Date | null;
  retired_at: Date | null;
};
const COLUMNS = 'id, currency, xpub, origin, start_index, next_index, created_at, confirmed_at, retired_at';
const stored = (row: Row): StoredKey => ({
  id: row.id,
  currency: row.currency,
  xpub: row.xpub,
  origin: row.origin,
  startIndex: Number(row.start_index),
  nextIndex: Number(row.next_index),
  createdAt: row.created_at,
  confirmedAt: row.confirmed_at,
  retiredAt: row.retired_at,
});

/** Every key that was ever in use, oldest first; those in use have no `retiredAt`. */
export async function listKeys(sql: Sql): Promise<readonly StoredKey[]> {
  const result = await sql.query<Row>({
    name: 'list_keys',
    text: `select ${COLUMNS} from account_xpubs order by id`,
    values: [],
  });
  return result.rows.map(stored);
}

/** A key with which transactions are signed. */
export type SpendingKey<Code extends CurrencyCode = UtxoCode> = StoredKey & { readonly currency: Code };

/** Every key of a signer that a currency ever had, whether it is in use or confirmed or not. */
export async function signerKeys<Code extends CurrencyCode = UtxoCode>(
  sql: Sql,
  currency: Code,
): Promise<readonly SpendingKey<Code>[]> {
  const isOne = (key: StoredKey): key is SpendingKey<Code> => key.currency === currency && key.origin === 'signer';
  return (await listKeys(sql)).filter(isOne);
}

/** The key in use of a currency that this signer can spend with; null while it has confirmed none, or an imported one is in use. */
export async function spendingKey<Code extends CurrencyCode = UtxoCode>(
  sql: Sql,
  currency: Code,
): Promise<SpendingKey<Code> | null> {
  const key = (await signerKeys(sql, currency)).find(({ retiredAt }) => retiredAt === null);
  return key === undefined || key.confirmedAt === null ? null : key;
}

/** Marks a key that the signer knows as its own. */
export async function confirmKey(sql: Sql, id: bigint, at: Date): Promise<void> {
  await sql.query({ name: 'confirm_key', text: 'update account_xpubs set confirmed_at = $2 where id = $1', values: [id, at] });
}

/** Removes a key's confirmation: nothing is derived from it any more. */
export async function distrustKey(sql: Sql, id: bigint): Promise<void> {
  await sql.query({ name: 'distrust_key', text: 'update account_xpubs set confirmed_at = null where id = $1', values: [id] });
}

/** Adds the signer's key of a currency that has none; false when another process was first. */
export async function addSignerKey(
  sql: Sql,
  key: { readonly currency: CurrencyCode; readonly xpub: string; readonly at: Date; readonly nextIndex?: number },
): Promise<boolean> {
  const result = await sql.query({
    name: 'add_signer_key',
    text: `insert into account_xpubs (currency, xpub, origin, created_at, confirmed_at, next_index, start_index) values ($1, $2, 'signer', $3, $3, $4, $4)
           on conflict do nothing`,
    values: [key.currency, key.xpub, key.at, key.nextIndex ?? 0],
  });
  return result.rowCount === 1;
}

/** The highest index at which a key that is put in use may go on. */
export const HIGHEST_START = END_OF_INDEXES - NEEDED_INDEXES;

export type ImportOutcome =
  | { readonly outcome: 'in_use' | 'replaced' | 'first'; readonly key: StoredKey }
  | { readonly outcome: 'of_other_currency'; readonly currency: CurrencyCode }
  /** Too few indexes are left from here on. */
  | { readonly outcome: 'without_room'; readonly nextIndex: number };

/**
 * Makes a key the one in use for its currency. The previous key is kept with its index counter, so a key that comes back continues where it
 * stopped. No key begins below `start`, not even one that is in use already. A key that serves another currency is refused (they would
 * share output scripts), and so is one that would go on above `HIGHEST_START`: soon no address could be given out.
 */
export function importKey(
  db: Database,
  key: { readonly currency: CurrencyCode; readonly xpub: string; readonly at: Date; readonly start?: number },
): Promise<ImportOutcome> {
  return db.transaction(async (sql) => {
    // of two imports at once the second waits here
    await sql.query({ name: 'lock_keys', text: 'lock table account_xpubs in share row exclusive mode', values: [] });
    const keys = await listKeys(sql);
    const known = keys.find((row) => row.xpub === key.xpub);
    if (known !== undefined && known.currency !== key.currency) return { outcome: 'of_other_currency', currency: known.currency };
    const start = key.start ?? 0;
    const nextIndex = Math.max(start, known?.nextIndex ?? 0);
    const isUnchanged = known?.retiredAt === null && nextIndex === known.nextIndex;
    if (nextIndex > HIGHEST_START && !isUnchanged) return { outcome: 'without_room', nextIndex };
    if (known !== undefined && known.retiredAt === null) return { outcome: 'in_use', key: await raised(sql, known, start) };
    const retired = await sql.query({
      name: 'retire_key',
      text: 'update account_xpubs set retired_at = $2 where currency = $1 and retired_at is null',
      values: [key.currency, key.at],
    });
    const result = await sql.query<Row>({
      name: 'import_key',
      text: `insert into account_xpubs (currency, xpub, origin, created_at, start_index, next_index) values ($1, $2, 'imported', $3, $4, $4)
             on conflict (xpub) do update set retired_at = null, next_index = greatest(account_xpubs.next_index, excluded.next_index),
               start_index = case when excluded.next_index > account_xpubs.next_index then excluded.next_index else account_xpubs.start_index end
             returning ${COLUMNS}`,
      values: [key.currency, key.xpub, key.at, start],
    });
    return { outcome: retired.rowCount === 0 ? 'first' : 'replaced', key: stored(result.rows[0] as Row) };
  });
}

/** The key, with its counter raised to at least this index. */
async function raised(sql: Sql, key: StoredKey, to: number): Promise<StoredKey> {
  const { rows } = await sql.query<Row>({
    name: 'raise_key_in_use',
    text: `update account_xpubs set next_index = greatest(next_index, $2), start_index = case when $2 > next_index then $2 else start_index end
             where id = $1 returning ${COLUMNS}`,
    values: [key.id, to],
  });
  return stored(rows[0] as Row);
}
