// The audit: every invariant of the books, asked on one snapshot, and the addresses derived again by second libraries. Called by
// `bursar audit`, by the worker's schedule and by tests after each scenario.
import { TRANSITIONS } from '../core/transaction-states.ts';
import { type Answer, askAll, readSnapshot } from '../store/audit.ts';
import { verifyAddresses } from './address-check.ts';
import type { Context } from './context.ts';

export type AuditReport = { readonly ok: boolean; readonly answers: readonly Answer[]; readonly atMs: number };

/** Asks every invariant that exists so far. `ok` is false when one is red. */
export async function runAudit(ctx: Context): Promise<AuditReport> {
  const paths = [
    ...new Set(TRANSITIONS.filter((row) => row.from !== null && row.from !== row.to).map((row) => `${row.from} ${row.to}`)),
  ];
  const books = await ctx.db.transaction(async (sql) => {
    await readSnapshot(sql);
    return askAll(sql, paths);
  });
  const answers = [...books, await addressAnswer(ctx)];
  return { ok: answers.every((answer) => answer.findings.length === 0), answers, atMs: ctx.ports.clock.now() };
}

/** How many of the newest addresses are derived again: about a millisecond each. */
const ADDRESSES = 1_000;
const SHOWN = 20;

async function addressAnswer(ctx: Context): Promise<Answer> {
  const { wrong } = await verifyAddresses(ctx, ADDRESSES);
  const findings = wrong.map(
    ({ transactionId, currency, address }) => `${transactionId}: no key of ${currency} gives ${address}`,
  );
  const says = `the newest ${ADDRESSES} addresses are those that second libraries derive`;
  return { id: 'KEY-7', says, findings: findings.slice(0, SHOWN), more: findings.length > SHOWN };
}
