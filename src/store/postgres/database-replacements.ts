// The times at which a worker found that the database was replaced (database-identity.ts).
import type { Sql } from './connect.ts';

export type Replacement = { readonly evidence: string; readonly noticedAt: Date };

/** Notes that the database was found to be another one; the same evidence again only renews its time. `/readyz` tells of it for a day. */
export async function recordReplacement(sql: Sql, evidence: string): Promise<void> {
  await sql.query({
    name: 'record_replacement',
    text: `insert into database_replacements (evidence, noticed_at) values ($1, now())
             on conflict (evidence) do update set noticed_at = excluded.noticed_at`,
    values: [evidence],
  });
}

/** Those of the last hours, the newest first. */
export async function readReplacements(sql: Sql, hours: number): Promise<readonly Replacement[]> {
  const { rows } = await sql.query<{ evidence: string; noticed_at: Date }>({
    name: 'read_replacements',
    text: `select evidence, noticed_at from database_replacements where noticed_at > now() - make_interval(hours => $1) order by noticed_at desc`,
    values: [hours],
  });
  return rows.map((row) => ({ evidence: row.evidence, noticedAt: row.noticed_at }));
}

/** One sentence for an operator, without a full stop. */
export function describeReplacement({ evidence, noticedAt }: Replacement): string {
  return `the database was replaced under the running service, found at ${noticedAt.toISOString()} (${evidence}): what was written last before may be missing in it; the workers have read every mempool again`;
}
