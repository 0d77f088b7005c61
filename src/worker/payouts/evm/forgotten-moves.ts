// What our addresses on Ethereum's chain have sent to each other and nobody here has signed, as blocks show it: booked once two nodes (the only one,
// where there is one) show that it is final.
import { isDeepStrictEqual } from 'node:util';
import { evmInput, evmScript } from '../../../core/currencies/evm.ts';
import type { EvmCode } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Outpoint } from '../../../core/ports.ts';
import type { Context } from '../../../flow/context.ts';
import { everyHotAddress } from '../../../flow/evm/batches.ts';
import { writeMoveBack } from '../../../flow/sweeps/forgotten-moves.ts';
import { readBlockHash, reservedNonces } from '../../../store/payouts/evm-lane.ts';
import { firstPaid } from '../../../store/sweeps/addresses.ts';
import { dropMove, readMoves, readMovesOf } from '../../../store/sweeps/forgotten-moves.ts';
import { troubleOf } from '../../chain/pass-result.ts';
import { findSent, MOST_NONCES } from './passed-nonces.ts';

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
  const hots = new Set(first.map(({ txid }) => txid));
  for (const txid of hots) others.delete(txid);
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
      if (!isShown) break;
      const before = { below: sender.vout, height: block.height, toSign: false };
      const waits = hots.has(sender.txid) ? null : await writeFailedBack(ctx, { currency, port }, addressOf(sender), before);
      if (waits !== null && ++unshown >= MOST_UNSHOWN) return;
      if (waits !== null || !(await writeMoveBack(ctx, { currency, block, facts: ended.facts }))) break;
    }
  }
}

/**
 * The same for those that have failed, of what the address of a transaction has sent since it was first paid: they have paid nobody, so no block notes
 * them, and what was sent after them may be known.
 * @param of.below the nonces that are looked at are below this one, which blocks up to `of.height` show to be used
 * @param of.toSign the next one is to be signed for
 * @returns what the address waits for; null: nothing
 * @throws NodeTrouble
 */
export async function writeFailedBack(
  ctx: Context,
  lane: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  { below, height, toSign }: { readonly below: number; readonly height: number; readonly toSign: boolean },
): Promise<string | null> {
  const { currency, port } = lane;
  const sender = evmInput(address, 0).txid;
  const known = await reservedNonces(ctx.db, currency, sender);
  const isGap = (nonce: number): boolean => !known.has(nonce);
  // how many there are is a node's word
  if (below <= known.size && !Array.from({ length: below }, (_, nonce) => nonce).some(isGap)) return null;
  const next = known.size === 0 ? null : Math.max(...known) + 1;
  const first = await sentBefore(ctx, lane, address);
  const nonces: number[] = [];
  for (let nonce = first ?? next ?? below; nonce < below && nonces.length < MOST_NONCES; nonce++)
    if (isGap(nonce)) nonces.push(nonce);
  const sent = new Map((await findSent(ctx, lane, address, { nonces, height })).map((one) => [one.nonce, one]));
  for (const nonce of nonces) {
    const one = sent.get(nonce);
    const isNext = toSign && next !== null && nonce >= next;
    // nothing that is signed for a nonce which is used already is ever mined
    if (one === undefined && isNext)
      return `what ${address} has sent at nonce ${nonce} is not known here, and no node knows any more after which block that was (one that keeps older states shows it)`;
    if (one?.isCarried === true && isNext)
      return `${one.facts.txid} carries what ${address} has authorized with nonce ${nonce}, and is booked first (bursar payout recover ${one.facts.txid})`;
    // what has paid somebody who is not known here is found when it displaces the next
    if (one?.facts.outcome?.result !== 'failed' && isNext) return null;
    if (one?.facts.outcome?.result !== 'failed') continue;
    const { txid } = one.facts;
    const { ended, isFinal } = await port.ended(txid);
    const isShown = isFinal && ended?.blockHash === one.block.hash && ended.facts.outcome?.result === 'failed';
    if (!isShown || !isDeepStrictEqual(ended.facts.inputs, [evmInput(address, nonce)]))
      return `${txid} of ${address} has failed, and is booked first, once two nodes (the only one, where there is one) show that its block is final`;
    await writeMoveBack(ctx, { currency, block: one.block, facts: ended.facts });
  }
  return null;
}

/** How many transactions an address had sent when it was first paid: its words may have been used elsewhere before. Null: no node knows any more. */
async function sentBefore(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
): Promise<number | null> {
  const height = await firstPaid(ctx.db, currency, Buffer.from(evmScript(address), 'hex'));
  if (height === null) return null;
  try {
    return (await port.account(address, height)).nonce;
  } catch (error) {
    if (troubleOf(error) === null) throw error;
    return null;
  }
}

/** The address of a sender. */
const addressOf = ({ txid }: Outpoint): string => `0x${txid.slice(-40)}`;

/** Begins with another one each time: what is never shown hides none of the others. */
function turned<T>(all: readonly T[]): readonly T[] {
  const first = Math.floor(performance.now()) % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}
