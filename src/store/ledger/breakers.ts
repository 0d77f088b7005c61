// Breakers: what a red audit stops (payouts), since when and why. Only a green full audit on an operator's request clears them.
import { wakeHeldJob } from '../payouts/payouts.ts';
import type { Sql } from '../postgres/connect.ts';

export type BreakerName = 'payouts';
export type Breaker = {
  readonly name: BreakerName;
  /** Ids of the invariants that were red. */
  readonly trippedBy: readonly string[];
  readonly findings: readonly string[];
  readonly trippedAtMs: number;
  /** The last audit that was still red. */
  readonly seenAtMs: number;
};

/** Trips a breaker, and wakes what stops payouts that are queued. One that is open already keeps its time; new reasons are added. */
export async function tripBreaker(
  sql: Sql,
  trip: {
    readonly name: BreakerName;
    readonly by: readonly string[];
    readonly findings: readonly string[];
    readonly atMs: number;
  },
): Promise<void> {
  const { rows } = await sql.query<{ is_new: boolean }>({
    name: 'trip_breaker',
    text: `insert into breakers (name, tripped_by, findings, tripped_at, seen_at) values ($1, $2, $3, $4, $4)
             on conflict (name) where cleared_at is null do update set seen_at = excluded.seen_at,
               tripped_by = array(select distinct unnest(breakers.tripped_by || excluded.tripped_by) order by 1),
               findings = (array(select distinct unnest(breakers.findings || excluded.findings) order by 1))[1:${KEPT}]
             returning xmax = 0 as is_new`,
    values: [trip.name, trip.by, trip.findings, new Date(trip.atMs)],
  });
  if (rows[0]?.is_new === true) await wakeHeldJob(sql);
}
const KEPT = 200;

/** The breakers that are open. */
export async function openBreakers(sql: Sql): Promise<readonly Breaker[]> {
  const { rows } = await sql.query<{
    name: BreakerName;
    tripped_by: string[];
    findings: string[];
    tripped_at: Date;
    seen_at: Date;
  }>({
    name: 'open_breakers',
    text: 'select name, tripped_by, findings, tripped_at, seen_at from breakers where cleared_at is null order by id',
    values: [],
  });
  return rows.map((row) => ({
    name: row.name,
    trippedBy: row.tripped_by,
    findings: row.findings,
    trippedAtMs: row.tripped_at.getTime(),
    seenAtMs: row.seen_at.getTime(),
  }));
}

/** Whether an operator has cleared a breaker that was tripped by this finding. */
export async function wasCleared(sql: Sql, finding: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'was_cleared',
    text: 'select 1 from breakers where cleared_at is not null and $1 = any(findings) limit 1',
    values: [finding],
  });
  return rows.length > 0;
}

/** Closes every breaker and returns how many were open. The row stays as history. */
export async function clearBreakers(sql: Sql, by: string, atMs: number): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'clear_breakers',
    text: 'update breakers set cleared_at = $2, cleared_by = $1 where cleared_at is null',
    values: [by, new Date(atMs)],
  });
  return rowCount ?? 0;
}
