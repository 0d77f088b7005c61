// What our addresses on Ethereum's chain have sent to each other and nobody here has signed, as blocks show it: booked once two nodes (the only one,
// where there is one) show that it is final.
import { isDeepStrictEqual } from 'node:util';
import { evmInput } from '../../../core/currencies/evm.ts';
import type { EvmCode } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Context } from '../../../flow/context.ts';
import { everyHotAddress } from '../../../flow/evm/batches.ts';
import { writeMoveBack } from '../../../flow/sweeps/forgotten-moves.ts';
import { readBlockHash } from '../../../store/payouts/evm-lane.ts';
import { dropMove, readMoves, readMovesOf } from '../../../store/sweeps/forgotten-moves.ts';
import { findSent } from './passed-nonces.ts';

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
  // payouts wait for what has left the addresses that they leave from
  const first = (await everyHotAddress(ctx, ctx.db, currency)).map(({ address }) => evmInput(address, 0));
  const ofHot = await Promise.all(first.map((sender) => readMovesOf(ctx.db, currency, sender, MOST_MOVES)));
  const others = Map.groupBy(moves, ({ sender }) => sender.txid);
  for (const { txid } of first) others.delete(txid);
  for (const ofSender of [...ofHot, ...turned([...others.values()])]) {
    for (const { txid, sender, block } of ofSender) {
      const hash = await readBlockHash(ctx.db, currency, block.height);
      // the block that has it now notes it again
      if (hash !== block.hash) await dropMove(ctx.db, currency, { txid, block });
      if (hash !== block.hash || block.height > finalHeight) continue;
      const { ended, isFinal } = await port.ended(txid);
      const isShown = isFinal && ended?.blockHash === block.hash && isDeepStrictEqual(ended.facts.inputs, [sender]);
      if (!isShown && ++unshown >= MOST_UNSHOWN) return;
      // what comes after it waits for it
      if (!isShown || !(await writeMoveBack(ctx, { currency, block, facts: ended.facts }))) break;
    }
  }
}

/**
 * The same for one that has failed, at a nonce of the address of a transaction after which more was sent: it has paid nobody, so no block notes it.
 * @returns what the next one waits for; null: what was sent there has not failed
 * @throws NodeTrouble
 */
export async function writeFailedBack(
  ctx: Context,
  lane: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  { nonce, height }: { readonly nonce: number; readonly height: number },
): Promise<string | null> {
  const [sent] = await findSent(ctx, lane, address, { nonces: [nonce], height });
  // nothing that is signed for a nonce which is used already is ever mined
  if (sent === undefined)
    return `what ${address} has sent at nonce ${nonce} is not known here, and no node knows any more after which block that was (one that keeps older states shows it)`;
  if (sent.facts.outcome?.result !== 'failed') return null;
  const { txid } = sent.facts;
  const { ended, isFinal } = await lane.port.ended(txid);
  const isShown = isFinal && ended?.blockHash === sent.block.hash && ended.facts.outcome?.result === 'failed';
  if (isShown && isDeepStrictEqual(ended.facts.inputs, [evmInput(address, nonce)]))
    await writeMoveBack(ctx, { currency: lane.currency, block: sent.block, facts: ended.facts });
  return `${txid} of ${address} has failed, and is booked first, once two nodes (the only one, where there is one) show that its block is final`;
}

/** Begins with another one each time: what is never shown hides none of the others. */
function turned<T>(all: readonly T[]): readonly T[] {
  const first = Math.floor(performance.now()) % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}
