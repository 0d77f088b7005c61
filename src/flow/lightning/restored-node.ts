// A Lightning node that knows fewer payments than it did was restored from an older state: what it says of payments it may have forgotten proves
// nothing, so nothing new is paid, and what was under way waits for an operator.
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { doubtPayments, recordPayingNode } from '../../store/lightning/paying-node.ts';
import { lockPayouts, movePayout } from '../../store/payouts/payouts.ts';
import type { Context } from '../context.ts';

export type SeenNode = { readonly identity: string; readonly paymentIndex: bigint };

/** Records how many payments the node knows. @returns whether it was restored; payouts are stopped then */
export async function noteNode(ctx: Context, node: SeenNode): Promise<boolean> {
  if (!(await recordPayingNode(ctx.db, node, ctx.ports.clock.now()))) return false;
  await stopOnRestored(ctx, node, `it knows payments up to number ${node.paymentIndex}, and knew more`);
  return true;
}

/** @param why what shows it, as the end of a sentence */
export function stopOnRestored(ctx: Context, node: SeenNode, why: string): Promise<void> {
  return ctx.db.transaction(async (sql) => {
    const atMs = ctx.ports.clock.now();
    const ids = await doubtPayments(sql, node, atMs);
    for (const payout of await lockPayouts(sql, ids))
      if (payout.step === 'batched') await movePayout(sql, payout, 'outcome_unknown', { heldReason: 'unknown_outcome', atMs });
    const finding = `Lightning node ${node.identity} was restored from an older state: ${why}; what it was asked to pay may have been paid`;
    await tripBreaker(sql, { name: 'payouts', by: ['LN-5'], findings: [finding], atMs });
  });
}
