// The audit: every invariant of the books, asked on one snapshot, and the addresses derived again by second libraries. Called by
// `bursar audit`, by the worker's schedule and by tests after each scenario.
import { TRANSITIONS } from '../core/transaction-states.ts';
import { type Answer, askAll, readSnapshot } from '../store/audit.ts';
import type { Context } from './context.ts';

export type AuditReport = { readonly ok: boolean; readonly answers: readonly Answer[]; readonly atMs: number };

/** Asks every invariant that exists so far. `ok` is false when one is red. */
export async function runAudit(ctx: Context): Promise<AuditReport> {
  const paths = [
    ...new Set(TRANSITIONS.filter((row) => row.from !== null && row.from !== row.to).map((row) => `${row.from} ${row.to}`)),
  ];
  const answers = await ctx.db.transaction(async (sql) => {
    await readSnapshot(sql);
    return askAll(sql, paths);
  });
  return { ok: answers.every((answer) => answer.findings.length === 0), answers, atMs: ctx.ports.clock.now() };
}
