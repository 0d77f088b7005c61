// What our addresses on Ethereum's chain have sent to each other and nobody here has signed, as blocks show it: booked once two nodes (the only one,
// where there is one) show that it is final.
import { isDeepStrictEqual } from 'node:util';
import type { EvmCode } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Context } from '../../../flow/context.ts';
import { writeMoveBack } from '../../../flow/sweeps/forgotten-moves.ts';
import { readBlockHash } from '../../../store/payouts/evm-lane.ts';
import { dropMove, readMoves } from '../../../store/sweeps/forgotten-moves.ts';

/** Looked at in one go; after a day of work without its copy there may be many. */
export const MOST_MOVES = 5_000;
/** Where a node is silent, or wrong, it is not asked about all of them at each look. */
const MOST_UNSHOWN = 10;

/**
 * Writes back what can be; the rest waits for its block to be final, for another node, or for what was sent before it.
 * @throws NodeTrouble
 */
export async function writeMovesBack(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
): Promise<void> {
  const moves = await readMoves(ctx.db, currency, MOST_MOVES);
  if (moves.length === 0) return;
  const finalHeight = (await port.finalized())?.height ?? -1;
  let unshown = 0;
  for (const ofSender of turned([...Map.groupBy(moves, ({ sender }) => sender.txid).values()])) {
    for (const { txid, sender, block } of ofSender) {
      const hash = await readBlockHash(ctx.db, currency, block.height);
      // the block that has it now notes it again
      if (hash !== block.hash) await dropMove(ctx.db, currency, { txid, block });
      if (hash !== block.hash || block.height > finalHeight) continue;
      const { ended, isFinal } = await port.ended(txid);
      const isShown = isFinal && ended?.blockHash === block.hash && isDeepStrictEqual(ended.facts.inputs, [sender]);
      if (!isShown && ++unshown >= MOST_UNSHOWN) return;
      // what comes after it waits for it
      if (isShown && !(await writeMoveBack(ctx, { currency, block, facts: ended.facts }))) break;
    }
  }
}

/** Begins with another one each time: what is never shown hides none of the others. */
function turned<T>(all: readonly T[]): readonly T[] {
  const first = Math.floor(performance.now()) % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}
