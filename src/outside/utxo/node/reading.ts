// What a node answers beside what it was asked for: where bytes cannot be read or prove nothing, and where it refuses, it is the node's
// trouble, by its name.
import type { BlockFacts, TransactionFacts } from '../../../core/ports.ts';
import { Malformed } from '../bytes.ts';
import { readTransactionBytes } from '../transaction.ts';
import type { Rpc } from './rpc.ts';
import { NodeTrouble, RpcRefusal } from './trouble.ts';
import { type Asked, readDecodedBlock, readDecodedTransaction } from './verbose-answers.ts';

/** `Block not available (pruned data)` of Bitcoin Core and its descendants. */
const PRUNED = /pruned/i;

/** What a block does not prove is its node's trouble. */
export async function asTrouble<T>(rpc: Rpc, hash: string, check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (cause) {
    if (!(cause instanceof Malformed)) throw cause;
    throw new NodeTrouble('bad_answer', `${rpc.name}: block ${hash}: ${cause.message}`, { cause });
  }
}

/** From its bytes; if they cannot be read, from the node's decoded answer. */
export async function readTransaction(asked: Asked, txid: string, raw: Buffer): Promise<TransactionFacts | null> {
  try {
    return readTransactionBytes(raw, txid, asked.features, asked.watch);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    try {
      return await readDecodedTransaction(asked, txid, raw.length);
    } catch (cause) {
      if (!(cause instanceof Malformed)) throw cause;
      throw new Malformed(bothReasons(error, cause), { cause });
    }
  }
}

/** What neither the bytes nor the decoded answer prove is the node's trouble: nothing is booked from it, and it is requested again. */
export async function decodedBlock(
  unread: Malformed,
  asked: Asked,
  block: { readonly hash: string; readonly bytes: Buffer; readonly listed: 1 | true },
): Promise<BlockFacts> {
  try {
    return await readDecodedBlock(asked, block);
  } catch (cause) {
    if (!(cause instanceof Malformed || cause instanceof RpcRefusal)) throw cause;
    const reason = `${asked.rpc.name}: block ${block.hash} cannot be read: ${bothReasons(unread, cause)}`;
    throw new NodeTrouble('bad_answer', reason, { cause });
  }
}

/** Why the bytes could not be read, and why the node's decoded answer did not help. */
function bothReasons(bytes: Error, decoded: Error): string {
  return decoded.message === bytes.message ? decoded.message : `${bytes.message}; from its decoded answer: ${decoded.message}`;
}

/**
 * Turns a refusal of what every node must answer into NodeTrouble: `pruned` where it no longer has old blocks, else `bad_answer`.
 * @param what names what was read, for the operator
 */
export async function refusalAsTrouble<T>(rpc: Rpc, call: Promise<T>, what = ''): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    if (!(cause instanceof RpcRefusal)) throw cause;
    const about = what === '' ? '' : ` (${what})`;
    if (PRUNED.test(cause.message)) {
      const reason = `${rpc.name}: it is pruned and no longer has what we need${about}; give it more space (prune=…), or another node`;
      throw new NodeTrouble('pruned', reason, { cause });
    }
    throw new NodeTrouble('bad_answer', `${rpc.name}: ${cause.message}${about}`, { cause });
  }
}
