// Open payouts as the audit sees them: each must be what the key that it names has signed, and none should take too long.
import { setImmediate } from 'node:timers/promises';
import type { Answer } from '../../store/ledger/audit.ts';
import { latePayouts, openIntents } from '../../store/payouts/open-intents.ts';
import type { Context } from '../context.ts';
import { isAsSigned } from './signed-payouts.ts';

const AT_ONCE = 100;
const SHOWN = 20;
const HOUR_MS = 3_600_000;
/** Seven banking days and the weekends and holidays between them, for a bank account; a day for a chain, an hour for Lightning. */
const LONGEST_MS = {
  lightning: HOUR_MS,
  bitcoin: 24 * HOUR_MS,
  usdt: 24 * HOUR_MS,
  reimbursement: 24 * HOUR_MS,
  ach: 12 * 24 * HOUR_MS,
} as const;

/** INT-1: whoever writes to the database without the key of an API changes nothing of a payout that goes unnoticed until it is to leave. */
export async function auditIntents(ctx: Context): Promise<Answer> {
  const findings: string[] = [];
  for (let after = ''; findings.length <= SHOWN; ) {
    const found = await openIntents(ctx.db, after, AT_ONCE);
    for (const payout of found) {
      after = payout.id;
      if (!isAsSigned(ctx, payout)) findings.push(`${payout.id} is not what its API has signed`);
    }
    if (found.length < AT_ONCE) break;
    // others of this process go on in between
    await setImmediate();
  }
  const says = 'every open payout and reimbursement is what its API has signed';
  return { id: 'INT-1', says, findings: findings.slice(0, SHOWN), more: findings.length > SHOWN };
}

/** INV-19: it is told and stops nothing, because a receiver, a miner or a bank may take its time. */
export async function auditLate(ctx: Context): Promise<Answer> {
  const findings = await latePayouts(ctx.db, { nowMs: ctx.ports.clock.now(), longest: LONGEST_MS, limit: SHOWN + 1 });
  const says = 'no payout is on its way for longer than its method takes';
  return { id: 'INV-19', says, findings: findings.slice(0, SHOWN), more: findings.length > SHOWN };
}
