// The first start on a chain.
import type { ChainPort, NodeCondition } from '../core/ports.ts';
import { beginCursor, type ChainCursor, readCursor } from '../store/chain/blocks.ts';
import type { ChainContext } from './chain-context.ts';
import { watchOnly } from './watch-list.ts';

/** Begins at the node's tip, since nothing older can be ours; returns the cursor there. */
export async function beginChain(
  ctx: ChainContext,
  port: ChainPort,
  tip: Extract<NodeCondition, { state: 'ready' }>,
  atMs: number,
): Promise<ChainCursor> {
  const block = await port.readBlock(tip.hash, watchOnly([]));
  await ctx.db.transaction((sql) =>
    beginCursor(
      sql,
      port.currency,
      { height: tip.height, hash: block.hash, previousHash: block.previousHash, timeMs: block.timeMs },
      atMs,
    ),
  );
  return (await readCursor(ctx.db, port.currency)) as ChainCursor;
}
