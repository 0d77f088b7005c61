// The times at which it was found that the database was put back to an earlier state, or replaced: under a running process
// (database-identity.ts), or while nothing ran (database-home.ts).
import type { Sql } from './connect.ts';

export type Replacement = { readonly evidence: string; readonly noticedAt: Date };

/** What several processes find within this time is one and the same. */
const TOLD_TOGETHER = `interval '5 minutes'`;

/** What was found a moment ago, by whichever process; null = nothing. */
export async function toldJustNow(sql: Sql): Promise<string | null> {
  const { rows } = await sql.query<{ evidence: string }>({
    name: 'told_just_now',
    text: `select evidence from database_replacements where acknowledged_at is null and noticed_at > now() - ${TOLD_TOGETHER}
            order by noticed_at desc limit 1`,
    values: [],
  });
  return rows[0]?.evidence ?? null;
}

/**
 * Notes that the database was found to be another one; the same evidence again only renews its time, and better evidence takes the place of what
 * was found a moment ago. `/readyz` tells of it for a day.
 */
export async function recordReplacement(sql: Sql, evidence: string): Promise<void> {
  const before = await toldJustNow(sql);
  if (before !== null) await sql.query({ text: 'delete from database_replacements where evidence = $1', values: [before] });
  await sql.query({
    name: 'record_replacement',
    text: `insert into database_replacements (evidence, noticed_at) values ($1, now())
             on conflict (evidence) do update set noticed_at = excluded.noticed_at, acknowledged_at = null, acknowledged_by = null`,
    values: [evidence],
  });
}

/** Those of the last hours at which no operator has looked, the newest first. */
export async function readReplacements(sql: Sql, hours: number): Promise<readonly Replacement[]> {
  const { rows } = await sql.query<{ evidence: string; noticed_at: Date }>({
    name: 'read_replacements',
    text: `select evidence, noticed_at from database_replacements
            where noticed_at > now() - make_interval(hours => $1) and acknowledged_at is null order by noticed_at desc`,
    values: [hours],
  });
  return rows.map((row) => ({ evidence: row.evidence, noticedAt: row.noticed_at }));
}

/** An operator has looked at all of them. @returns how many nobody had looked at before */
export async function acknowledgeReplacements(sql: Sql, who: string): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'acknowledge_replacements',
    text: 'update database_replacements set acknowledged_at = now(), acknowledged_by = $1 where acknowledged_at is null',
    values: [who],
  });
  return rowCount ?? 0;
}

/** What is to be thought of it, after the evidence. */
export const MAY_BE_MISSING =
  'what was written last before may be missing in it, also what merchants were told of; bursar audit --acknowledge database ends this notice';

/** One sentence for an operator, without a full stop. */
export function describeReplacement({ evidence, noticedAt }: Replacement): string {
  return `the database was put back or replaced, found at ${noticedAt.toISOString()} (${evidence}): ${MAY_BE_MISSING}`;
}
