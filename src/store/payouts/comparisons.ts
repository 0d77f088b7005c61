// Up to which block what has left was compared with the chain (with the bank, with the Lightning node), and whether that was this database.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** Up to which block everything that our outputs did was known; null = nobody has compared yet. */
export async function checkedHeight(sql: Sql, currency: CurrencyCode): Promise<number | null> {
  const { rows } = await sql.query<{ height: number }>({
    name: 'checked_height',
    text: 'select height from comparisons where currency = $1',
    values: [currency],
  });
  return rows[0]?.height ?? null;
}

/** The timeline that is written to now and the database, as SQL: a standby that takes over begins another one, a copy is another one. */
export const HERE = `substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' ' || (select oid from pg_database where datname = current_database())`;
/**
 * SQL: whether a comparison is of this database as it runs now, not of a copy that was started since, nor of a standby that has taken over, nor of
 * a dump that was restored into a server which went on running: that writes each row anew, in a transaction of its own.
 * @param row the name of its row
 */
const isCurrent = (row: string): string =>
  `${row}.checked_at > pg_postmaster_start_time() and ${row}.timeline is not distinct from ${HERE} || ' ' || ${row}.xmin`;

/** A chain's outputs, the bank's files (USD), the signer's payments over Lightning. */
type Compared = CurrencyCode | 'USD' | typeof LIGHTNING.code;

/** @param currency USD: our bank files were compared with folder and bank, the height is 0 */
export async function saveChecked(sql: Sql, currency: Compared, height: number): Promise<void> {
  await sql.query({
    name: 'save_checked',
    text: `insert into comparisons (currency, height, checked_at, timeline) values ($1, $2, clock_timestamp(), ${HERE} || ' ' || pg_current_xact_id()::xid)
             on conflict (currency) do update set height = excluded.height, checked_at = excluded.checked_at, timeline = excluded.timeline`,
    values: [currency, height],
  });
}

/** What was compared does not hold any more: until the next time nothing new leaves, and nothing is cancelled, whichever worker has looked. */
export async function dropChecked(sql: Sql, currency: Compared): Promise<void> {
  await sql.query({
    name: 'drop_checked',
    text: `update comparisons set checked_at = '-infinity' where currency = $1 and checked_at > '-infinity'`,
    values: [currency],
  });
}

/** Whether outputs, or bank files, were compared since PostgreSQL was started, or took over. */
export async function isComparedSince(sql: Sql, currency: Compared): Promise<boolean> {
  const { rows } = await sql.query<{ compared: boolean }>({
    name: 'is_compared_since',
    text: `select exists (select from comparisons c where currency = $1 and ${isCurrent('c')}) as compared`,
    values: [currency],
  });
  return rows[0]?.compared === true;
}

/**
 * The currencies whose outputs (USD: whose bank files) were compared before PostgreSQL was started, or took over, and not since: whatever is
 * stored may be an older copy.
 */
export async function notComparedSince(sql: Sql): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ currency: string }>({
    name: 'not_compared_since',
    text: `select currency from comparisons c where not (${isCurrent('c')})`,
    values: [],
  });
  return new Set(rows.map(({ currency }) => currency));
}

/** Whether a payout that could be cancelled waits for that comparison. */
export async function waitsForComparison(
  sql: Sql,
  of: { readonly merchantId: bigint; readonly payoutId: string },
): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'waits_for_comparison',
    text: `select from payouts p join comparisons c on c.currency = case when p.payment_hash is null then p.currency else '${LIGHTNING.code}' end
            where p.id = $1 and p.merchant_id = $2 and p.status = 'pending' and not (${isCurrent('c')})`,
    values: [of.payoutId, of.merchantId],
  });
  return rows.length > 0;
}
