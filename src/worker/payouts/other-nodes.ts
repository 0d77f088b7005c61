// What the nodes besides the one that is read say of our outputs: that one may be behind, or have an empty mempool, and what database and signer
// have both forgotten is then shown by another one only.
import type { ChainPort, NodeCondition, Outpoint, PayingPort } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import { heightsOfOutputs } from '../../store/payouts/unknown-movements.ts';
import { reachable } from '../chain/pass-result.ts';

export type OtherNode = ReturnType<NonNullable<PayingPort['nodes']>>[number];
type Answering = { readonly node: OtherNode; readonly condition: NodeCondition };
type Block = { readonly height: number; readonly hash: string };

/** Those that answer; one that is away stops nothing. */
export async function otherNodes(port: PayingPort): Promise<readonly Answering[]> {
  const others = (port.nodes?.() ?? []).slice(1);
  const answers = await Promise.all(others.map(async (node) => ({ node, condition: await reachable(() => node.condition()) })));
  return answers.filter((one): one is Answering => one.condition !== null && one.condition.state !== 'down');
}

/** Names one that has blocks on top of what was read; null = none has. */
export async function aheadOf(others: readonly Answering[], read: Block): Promise<string | null> {
  for (const { node, condition } of others) {
    if (condition.state !== 'ready' || condition.height <= read.height) continue;
    const at = await reachable(async () => ({ hash: await node.hashAt(read.height) }));
    if (at?.hash === read.hash)
      return `${node.name} is at block ${condition.height}, and ${read.height} is the last that was read`;
  }
  return null;
}

/**
 * Those of our outputs that something spends by what a node says. One that it does not have because it has not the block that makes it, being
 * behind or on another branch, is not spent by that.
 * @param read the port of the node that is read
 * @returns null when it does not say
 */
export async function spentAt(
  ctx: Context,
  node: OtherNode,
  { read, outputs }: { readonly read: Pick<ChainPort, 'currency' | 'hashAt'>; readonly outputs: readonly Outpoint[] },
): Promise<readonly Outpoint[] | null> {
  const lacking = await reachable(() => node.spentOf(outputs));
  if (lacking === null || lacking.length === 0) return lacking;
  const made = await heightsOfOutputs(ctx.db, read.currency, lacking);
  const heights = [...new Set(made.map(({ height }) => height))].sort((a, b) => a - b);
  // whoever has a block has all below it
  let [has, hasNot] = [-1, heights.length];
  while (hasNot - has > 1) {
    const middle = (has + hasNot) >> 1;
    const height = heights[middle] as number;
    const [theirs, ours] = await Promise.all([reachable(async () => ({ hash: await node.hashAt(height) })), read.hashAt(height)]);
    if (theirs === null) return null;
    if (theirs.hash !== null && theirs.hash === ours) has = middle;
    else hasNot = middle;
  }
  const highest = has < 0 ? -1 : (heights[has] as number);
  return made.filter(({ height }) => height <= highest).map(({ txid, vout }) => ({ txid, vout }));
}
