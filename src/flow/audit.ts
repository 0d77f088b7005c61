// The audit: checks every invariant of the books on one snapshot, the chains against the books, and the addresses by a second derivation. A
// red audit trips the breaker of payouts.
import { TRANSITIONS } from '../core/transaction-states.ts';
import { OF_BANK_FILES } from '../store/ledger/ach-audit.ts';
import { type Answer, ask, askAll, readSnapshot } from '../store/ledger/audit.ts';
import { OF_BALANCES, TOLD_OF_BALANCES } from '../store/ledger/balance-audit.ts';
import { OF_BATCHES } from '../store/ledger/batch-audit.ts';
import { clearBreakers, tripBreaker } from '../store/ledger/breakers.ts';
import { TOLD_OF_DATABASE } from '../store/ledger/database-audit.ts';
import { OF_DERIVED } from '../store/ledger/derived-audit.ts';
import { OF_PAYMENTS } from '../store/ledger/payment-audit.ts';
import { OF_EXPOSURE, OF_PAYOUTS, TOLD_OF_PAYOUTS } from '../store/ledger/payout-audit.ts';
import { type ChainTotals, OUR_SCRIPTS, RECONCILIATION, readChainTotals } from '../store/ledger/reconciliation.ts';
import { OF_REIMBURSEMENTS } from '../store/ledger/reimbursement-audit.ts';
import { OF_LIGHTNING, TOLD_OF_LIGHTNING } from '../store/lightning/audit.ts';
import { wakeHeldJob } from '../store/payouts/payouts.ts';
import { verifyAddresses } from './addresses/check.ts';
import type { Context } from './context.ts';
import { auditLinks } from './ledger-links.ts';
import { auditSeals } from './merchants/seals.ts';
import { auditIntents, auditLate } from './payouts/intent-audit.ts';

export type AuditReport = {
  readonly ok: boolean;
  readonly answers: readonly Answer[];
  /** What an operator should look at, and what stops nothing. */
  readonly pages: readonly Answer[];
  readonly atMs: number;
  /** What our addresses received on each chain, and how much of it is booked. */
  readonly chains: readonly ChainTotals[];
};

const ALL_BLOCKS = 2_000_000_000;
/** Every step from one status to another that the table of transitions allows, as `from to`. */
export const LAWFUL_STEPS: readonly string[] = [
  ...new Set(TRANSITIONS.filter((row) => row.from !== null && row.from !== row.to).map((row) => `${row.from} ${row.to}`)),
];

/** Checks every invariant that exists so far. `ok` is false when one is red. */
export async function runAudit(ctx: Context): Promise<AuditReport> {
  const books = await readSnapshot(ctx.db, async (sql) => {
    return {
      answers: [
        ...(await askAll(sql, LAWFUL_STEPS)),
        ...(await ask(
          sql,
          [
            ...OF_PAYMENTS,
            ...OF_DERIVED,
            ...OF_PAYOUTS,
            ...OF_REIMBURSEMENTS,
            ...OF_BATCHES,
            ...OF_BANK_FILES,
            ...OF_LIGHTNING,
            ...OF_BALANCES,
            ...OUR_SCRIPTS,
            ...RECONCILIATION,
          ],
          ALL_BLOCKS,
        )),
        ...(await ask(sql, OF_EXPOSURE, ctx.exposureMinor)),
      ],
      pages: await ask(sql, [...TOLD_OF_PAYOUTS, ...TOLD_OF_BALANCES, ...TOLD_OF_LIGHTNING, ...TOLD_OF_DATABASE], ALL_BLOCKS),
      chains: await readChainTotals(sql),
    };
  });
  const answers = [
    ...books.answers,
    await auditIntents(ctx),
    await auditSeals(ctx),
    await auditLinks(ctx),
    await addressAnswer(ctx),
  ];
  return { ...reportOf(ctx, answers, books.chains), pages: [await auditLate(ctx), ...books.pages] };
}

/** The chains against the books, for the newest blocks only: fast enough for every few minutes. */
export async function runReconciliation(ctx: Context, blocksBack: number): Promise<AuditReport> {
  const answers = await readSnapshot(ctx.db, (sql) => ask(sql, RECONCILIATION, blocksBack));
  return reportOf(ctx, answers, []);
}

function reportOf(ctx: Context, answers: readonly Answer[], chains: readonly ChainTotals[]): AuditReport {
  return { ok: answers.every((answer) => answer.findings.length === 0), answers, pages: [], chains, atMs: ctx.ports.clock.now() };
}

/** Stops payouts when the report is red, and records why; they stay stopped until {@link clearAfterAudit}. */
export async function tripIfRed(ctx: Context, report: AuditReport): Promise<void> {
  if (report.ok) return;
  const red = report.answers.filter((answer) => answer.findings.length > 0);
  await tripBreaker(ctx.db, {
    name: 'payouts',
    by: red.map((answer) => answer.id),
    findings: red.flatMap((answer) => answer.findings.map((finding) => `${answer.id}: ${finding}`)),
    atMs: report.atMs,
  });
}

/**
 * Lets payouts go on after a full audit, on an operator's request.
 * @param by who asked, for the history
 * @returns how many breakers were open; null when the report is red, and then nothing was cleared
 */
export async function clearAfterAudit(ctx: Context, report: AuditReport, by: string): Promise<number | null> {
  if (!report.ok) return null;
  const cleared = await clearBreakers(ctx.db, by, ctx.ports.clock.now());
  await wakeHeldJob(ctx.db);
  return cleared;
}

/** How many of the newest addresses are derived again: about a millisecond each. */
const ADDRESSES = 1_000;
const SHOWN = 20;

async function addressAnswer(ctx: Context): Promise<Answer> {
  const { wrong } = await verifyAddresses(ctx, ADDRESSES);
  const findings = wrong.map(
    ({ transactionId, currency, address }) => `${transactionId}: no key of ${currency} gives ${address}`,
  );
  const says = `the newest ${ADDRESSES} addresses are those that other libraries derive`;
  return { id: 'KEY-7', says, findings: findings.slice(0, SHOWN), more: findings.length > SHOWN };
}
