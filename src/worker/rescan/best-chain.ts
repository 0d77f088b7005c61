// Walks along the blocks that we have recorded as the best chain, as far as the node agrees, for everything that reads blocks again.
import type { BlockRef } from '../../core/block-ref.ts';
import type { ChainPort } from '../../core/ports.ts';
import { CursorMoved, hashesDown } from '../../store/chain/blocks.ts';
import type { ChainContext } from '../chain/context.ts';

const PAGE = 500;

/**
 * The blocks from one height to another, both included, in their order. Only the last one is compared with the node: a block commits to all
 * before it.
 * @throws CursorMoved when the node's best chain is not the one that we have recorded, or ours changes meanwhile
 */
export async function* bestChain(
  ctx: ChainContext,
  port: ChainPort,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<BlockRef> {
  if (from > to) return;
  const last = await port.hashAt(to);
  const check = async (): Promise<void> => {
    const [ours] = await hashesDown(ctx.db, port.currency, to, 1);
    // below our first block there is no header of ours to compare with
    if (last === null || (ours?.height === to && ours.hash !== last))
      throw new CursorMoved(`block ${to} of ${port.currency} is being replaced`);
  };
  await check();
  for (let height = from; height <= to; ) {
    const end = Math.min(to, height + PAGE - 1);
    const rows = await hashesDown(ctx.db, port.currency, end, end - height + 1);
    const ours = new Map(rows.map((row) => [row.height, row.hash]));
    for (; height <= end; height++) {
      const hash = ours.get(height) ?? (await port.hashAt(height));
      if (hash === null) throw new CursorMoved(`the node of ${port.currency} has no block ${height}`);
      yield { height, hash };
    }
  }
  await check();
}
