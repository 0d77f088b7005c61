// The audit on its schedule: of the newest blocks every five minutes, of everything every hour.
import { type CurrencyCode, type EvmCode, isUtxo } from '../core/currency.ts';
import type { EvmPort } from '../core/evm/port.ts';
import { type AuditReport, runAudit, runReconciliation, tripIfRed } from '../flow/audit.ts';
import type { Context } from '../flow/context.ts';
import { extendLinks } from '../flow/ledger-links.ts';
import { deniedBalances } from '../store/ledger/balance-audit.ts';
import { isComparedSince } from '../store/payouts/comparisons.ts';
import { Alarm, type Report } from './alarm.ts';
import { portOf } from './chain/context.ts';
import { reachable } from './chain/pass-result.ts';
import type { Job } from './loop.ts';
import { writeMovesBack } from './payouts/evm/forgotten-moves.ts';
import { compareBalances } from './rescan/address-balances.ts';
import { scheduled } from './scheduled-job.ts';

const MINUTE_MS = 60_000;
/** What the audit of every few minutes looks back. */
const RECONCILED_BLOCKS = 2_000;

/** @param currencies those that have a node */
export function auditJobs(ctx: Context, currencies: readonly CurrencyCode[], report: Report): Job[] {
  return [
    scheduled(ctx, 'reconciliation', 5 * MINUTE_MS, {
      urgent: false,
      async work() {
        await judged(ctx, report, runReconciliation(ctx, RECONCILED_BLOCKS));
        return false;
      },
    }),
    scheduled(ctx, 'audit', 60 * MINUTE_MS, {
      urgent: false,
      async work() {
        // what could not be sealed now is sealed the next time
        await extendLinks(ctx).catch((error: unknown) => report('audit', error));
        // what has left by itself is no loss
        await forgottenMoves(ctx, currencies).catch((error: unknown) => report('audit', error));
        // the audit goes on without them: what was compared before stays, and what is not compared is told
        const unread = await compareBalances(ctx, currencies).catch((error: unknown) => {
          report('audit', error);
          return null;
        });
        if (unread !== null) report('audit', new Alarm(`balances were not compared: ${unread}`));
        for (const denied of await deniedBalances(ctx.db)) report('audit', new Alarm(denied));
        await judged(ctx, report, runAudit(ctx));
        return false;
      },
    }),
  ];
}

/**
 * What our addresses have sent to each other and nobody here has signed is booked; of a node that cannot be asked it waits. A database that was put
 * back asks the signer first, which knows what it was.
 */
async function forgottenMoves(ctx: Context, currencies: readonly CurrencyCode[]): Promise<void> {
  for (const currency of currencies.filter((code): code is EvmCode => !isUtxo(code)))
    if (await isComparedSince(ctx.db, currency))
      await reachable(() => writeMovesBack(ctx, { currency, port: portOf(ctx, currency) as EvmPort }));
}

/** Red results are logged, and stop payouts. */
async function judged(ctx: Context, report: Report, audit: Promise<AuditReport>): Promise<void> {
  const audited = await audit;
  await tripIfRed(ctx, audited);
  for (const answer of audited.answers) {
    for (const finding of answer.findings) report('audit', new Error(`${answer.id} is red: ${finding}`));
  }
}
