// What our own node knows of a transaction besides its place on the chain: Dash's InstantSend locks and ChainLocks, and Bitcoin Cash's
// double-spend proofs. Only our node's answer counts, never what a transaction says of itself.
import type { ChainLock } from '../../../core/ports.ts';
import type { Rpc } from './rpc.ts';
import { NodeTrouble, RpcRefusal } from './trouble.ts';

export const METHOD_NOT_FOUND = -32601;

/** From Dash Core 0.14 on: the locks of those that have one. A transaction unknown to the node has none. */
export async function readLocks(rpc: Rpc, txids: readonly string[]): Promise<Map<string, ChainLock>> {
  const found = new Map<string, ChainLock>();
  for await (const [txid, answer] of eachAnswer(rpc, 'getrawtransaction', txids, [1])) {
    if (answer instanceof RpcRefusal) continue;
    const transaction = (answer ?? {}) as Record<string, unknown>;
    const { chainlock, instantlock, instantlock_internal: own = instantlock } = transaction;
    if (transaction.txid !== txid || typeof chainlock !== 'boolean' || typeof own !== 'boolean') {
      throw new NodeTrouble('bad_answer', `${rpc.name}: getrawtransaction did not answer the locks of ${txid}`);
    }
    // `instantlock` alone is also true when only the block is locked
    if (chainlock) found.set(txid, 'chainlock');
    else if (own) found.set(txid, 'instantsend');
  }
  return found;
}

/** From BCHN 23 on: those for which the node has seen proof that their inputs were signed for twice. Empty when it has no such method. */
export async function readDoubleSpendProofs(rpc: Rpc, txids: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const [txid, answer] of eachAnswer(rpc, 'getdsproof', txids, [])) {
    if (answer instanceof RpcRefusal) {
      if (answer.code === METHOD_NOT_FOUND) break;
      continue;
    }
    if (answer === null) continue;
    if (typeof (answer as { dspid?: unknown }).dspid !== 'string')
      throw new NodeTrouble('bad_answer', `${rpc.name}: getdsproof answered no dspid`);
    found.add(txid);
  }
  return found;
}

async function* eachAnswer(
  rpc: Rpc,
  method: string,
  txids: readonly string[],
  rest: readonly unknown[],
): AsyncGenerator<readonly [string, unknown]> {
  const params = txids.map((txid) => [txid, ...rest]);
  for await (const { from, answers } of rpc.inParts(method, params))
    for (const [i, answer] of answers.entries()) yield [txids[from + i] as string, answer];
}
