// Payouts that wait for an operator, such as one above the signer's limits. The reason is stored, the API shows `approval`, the merchant can
// cancel; each is tried again by itself, more and more rarely.

import type { CurrencyCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { refusalKind } from '../../core/payouts/signing-refusals.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import type { Batch } from '../../store/payouts/batch-rows.ts';
import { giveUpBatch } from '../../store/payouts/batches.ts';
import { lockPayout, movePayout, paidFrom, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { mustNotLeave } from '../../store/payouts/request-facts.ts';
import { insertOperatorHold } from '../../store/payouts/waiting-for-operator.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { isToBeAsked } from './after-restore/lost-outputs.ts';

/** Holds a queued payout until an operator has done something; its row is locked, or free. */
export async function holdForOperator(
  ctx: Context,
  sql: Sql,
  of: { readonly payoutId: string; readonly why: string },
): Promise<void> {
  const payout = await lockPayout(sql, of.payoutId, { wait: true });
  if (payout === null || payout.step !== 'queued') return;
  const atMs = ctx.ports.clock.now();
  await movePayout(sql, payout, 'needs_operator', { heldReason: 'approval', atMs });
  await insertOperatorHold(sql, {
    ...of,
    currency: paidFrom(payout),
    id: sortableId('batch_', atMs, ctx.ports.rng.bytes(10)),
    atMs,
  });
}

/**
 * Whether a batch for which nothing was signed must not be signed as it is: what it pays waits for something by now, or for a person who was not
 * asked about it yet.
 */
export async function mustWait({ db }: Context, { id, currency, payouts }: Batch<CurrencyCode>): Promise<boolean> {
  return (await mustNotLeave(db, id)) || (await isToBeAsked(db, currency, payouts));
}

/**
 * Gives a batch up for which nothing was signed and nothing can be any more. A payout that was refused alone waits for the operator; a refusal
 * that says that the books are wrong stops all payouts.
 * @param refusal the signer's message; null when it was not asked, because payouts are stopped or a merchant owes something
 * @returns whether the batch was given up under this epoch
 */
export function giveUpUnsignedBatch(
  ctx: Context,
  batch: Pick<Batch, 'id' | 'payouts'>,
  epoch: bigint,
  refusal: string | null,
): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    if (!(await giveUpBatch(sql, batch.id, epoch))) return false;
    const [first, ...others] = batch.payouts;
    const kind = refusal === null ? 'later' : refusalKind(refusal);
    if (kind === 'payout' && first !== undefined && others.length === 0)
      await holdForOperator(ctx, sql, { payoutId: first.id, why: refusal as string });
    if (kind === 'wrong') {
      const findings = [`the signer refuses ${batch.payouts.map(({ id }) => id).join(', ')}: ${refusal}`];
      await tripBreaker(sql, { name: 'payouts', by: ['signer'], findings, atMs: ctx.ports.clock.now() });
    }
    // what the payouts wait for is shown
    await wakeHeldJob(sql);
    return true;
  });
}
