// Failed sign-ins, by a hash of username and IP address: rows, so that neither a restart nor another server forgets them.
import type { Sql } from '../postgres/connect.ts';

export type Failures = { readonly failures: number; readonly endsAtMs: number };

/** The failures of the window that is open at `nowMs`; null when none is open. */
export async function readFailures(sql: Sql, key: Buffer, nowMs: number): Promise<Failures | null> {
  const { rows } = await sql.query<{ failures: number; ends_at: Date }>({
    name: 'failed_sign_ins_read',
    text: 'select failures, ends_at from failed_sign_ins where key = $1 and ends_at > $2',
    values: [key, new Date(nowMs)],
  });
  return rows[0] === undefined ? null : { failures: rows[0].failures, endsAtMs: rows[0].ends_at.getTime() };
}

/** Counts one more failure; the first of a window opens it until `endsAtMs`. Returns how many there are now, and deletes some that are over. */
export async function countFailure(
  sql: Sql,
  key: Buffer,
  at: { readonly nowMs: number; readonly endsAtMs: number },
): Promise<Failures> {
  const { rows } = await sql.query<{ failures: number; ends_at: Date }>({
    name: 'failed_sign_ins_count',
    text: `with over as (
             select key from failed_sign_ins where ends_at <= $2 and key <> $1 order by ends_at limit 20 for update skip locked
           ), gone as (delete from failed_sign_ins where key in (select key from over))
           insert into failed_sign_ins as f (key, failures, ends_at) values ($1, 1, $3)
           on conflict (key) do update
             set failures = case when f.ends_at > $2 then f.failures + 1 else 1 end,
                 ends_at = case when f.ends_at > $2 then f.ends_at else excluded.ends_at end
           returning failures, ends_at`,
    values: [key, new Date(at.nowMs), new Date(at.endsAtMs)],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('counting a failure returned no row');
  return { failures: row.failures, endsAtMs: row.ends_at.getTime() };
}
