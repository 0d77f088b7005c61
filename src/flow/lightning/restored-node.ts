// A Lightning node that knows fewer payments than it did was restored from an older state: what it says of payments it may have forgotten proves
// nothing, so nothing new is paid, and what was under way waits for an operator.
import { type NodeRun, runOf } from '../../core/lightning/node-run.ts';
import type { PayingNode } from '../../core/lightning/payer.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { readNodeRun, recordNodeRun } from '../../store/lightning/node-runs.ts';
import { doubtPayments, readKnownPayments, recordPayingNode } from '../../store/lightning/paying-node.ts';
import { lockPayouts, movePayout } from '../../store/payouts/payouts.ts';
import type { Context } from '../context.ts';

/** What has not changed is written as often as this: that there is a node to pay with. */
const SIGN_OF_LIFE_MS = 20_000;
const MOST_BEHIND_MS = 60_000;

export type SeenNode = { readonly identity: string; readonly paymentIndex: bigint };

/** What the node that pays says, the run that it is in, and when it was asked, by the clock that runs are dated with. */
export type Asked = PayingNode & SeenRun;
export type SeenRun = NodeRun & { readonly seenAtMs: number };
type Said = Pick<PayingNode, 'identity' | 'paymentIndex' | 'channels'>;

/**
 * Asks the node, and records how many payments it knows. Payouts are stopped when it knows fewer than it did before it was asked: another
 * worker may have paid and recorded more since.
 * @returns what it says, and the run that it is in
 * @throws what `ask` throws
 */
export async function askPayingNode<T extends Said>(ctx: Context, ask: () => Promise<T>): Promise<T & SeenRun> {
  const known = await readKnownPayments(ctx.db);
  const said = await ask();
  const node = { identity: said.identity, paymentIndex: BigInt(said.paymentIndex) };
  const before = known.get(node.identity);
  const nowMs = ctx.ports.clock.now();
  const isOld = before?.paysAtMs == null || Math.abs(nowMs - before.paysAtMs) >= SIGN_OF_LIFE_MS;
  const seen = await readNodeRun(ctx.db, node.identity);
  const seenAtMs = nowMs + behindOthers(ctx, seen.nowMs);
  const channels = said.channels.map(({ point, countedMs }) => ({ point, fromMs: seenAtMs - countedMs }));
  const run = runOf(channels, seen, seenAtMs);
  const isUnknown = run !== seen.run || channels.some(({ point }) => !seen.channels.has(point));
  if (isOld || isUnknown || node.paymentIndex > before.paymentIndex) {
    // together: what its channels count now, with the run of before, would say that it has run on
    await ctx.db.transaction(async (sql) => {
      await recordPayingNode(sql, node, nowMs);
      await recordNodeRun(sql, { identity: node.identity, channels, run }, nowMs);
    });
  }
  if (node.paymentIndex < (before?.paymentIndex ?? 0n))
    await stopOnRestored(ctx, node, `it knows payments up to number ${node.paymentIndex}, and knew more`);
  return { ...said, ...run, seenAtMs };
}

/**
 * By how much our clock is behind that of the database: the workers' may differ by more than what tells two starts apart, and each looks in its turn. A clock
 * that is further off counts for nothing: the database's machine may have been put back together with the node's.
 */
function behindOthers({ ports: { clock } }: Context, databaseMs: number): number {
  const ownMs = clock.now();
  const movedMs = clock.movedMs?.();
  const behindMs = movedMs === undefined ? 0 : databaseMs + movedMs - ownMs;
  return Math.abs(behindMs) <= MOST_BEHIND_MS ? behindMs : 0;
}

/** @param why what shows it, as the end of a sentence */
export function stopOnRestored(ctx: Context, node: SeenNode, why: string): Promise<void> {
  return ctx.db.transaction(async (sql) => {
    const atMs = ctx.ports.clock.now();
    const ids = await doubtPayments(sql, node, atMs);
    for (const payout of await lockPayouts(sql, ids))
      if (payout.step === 'batched') await movePayout(sql, payout, 'outcome_unknown', { heldReason: 'unknown_outcome', atMs });
    const finding = `Lightning node ${node.identity} was restored from an older state, or its payments were deleted (deletepayments): ${why}; what it was asked to pay may have been paid`;
    await tripBreaker(sql, { name: 'payouts', by: ['LN-5'], findings: [finding], atMs });
  });
}
