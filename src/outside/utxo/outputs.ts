// What a node knows of single outputs and transactions: whether an output is unspent, and the bytes of a transaction.
import type { Outpoint, PayingPort } from '../../core/ports.ts';
import { fromHex, orRefusal, type Rpc } from './node/rpc.ts';
import { NodeTrouble, RpcRefusal } from './node/trouble.ts';

/**
 * Those of the outputs that are not in the node's set of unspent outputs, its mempool included (gettxout): a transaction in a block or in the
 * mempool spends them, or none that the node has makes them.
 */
export async function readSpent(rpc: Rpc, outpoints: readonly Outpoint[]): Promise<Outpoint[]> {
  const spent: Outpoint[] = [];
  const params = outpoints.map(({ txid, vout }) => [txid, vout, true]);
  for await (const { from, answers } of rpc.inParts('gettxout', params)) {
    for (const [at, answer] of answers.entries()) {
      if (answer instanceof RpcRefusal) throw new NodeTrouble('bad_answer', `${rpc.name}: ${answer.message}`, { cause: answer });
      if (answer === null) spent.push(outpoints[from + at] as Outpoint);
      else if (typeof answer !== 'object') throw new NodeTrouble('bad_answer', `${rpc.name}: gettxout did not answer an output`);
    }
  }
  return spent;
}

/**
 * The bytes of a transaction in the mempool, or in the block that is named; null when the node does not show them.
 * @param ofBlock reads them from the bytes of the block: Dogecoin Core and bchd take no block with getrawtransaction
 */
export async function readRawTransaction(
  rpc: Rpc,
  { txid, blockHash }: { readonly txid: string; readonly blockHash: string | null },
  ofBlock: PayingPort['minedTransactions'] | null,
): Promise<Uint8Array | null> {
  if (blockHash !== null && ofBlock !== null) return (await ofBlock(blockHash, new Set([txid]))).get(txid) ?? null;
  const params = blockHash === null ? [txid] : [txid, false, blockHash];
  const answer = await orRefusal(rpc.call('getrawtransaction', params));
  if (answer instanceof RpcRefusal) return null;
  const bytes = fromHex(answer);
  if (bytes === null) throw new NodeTrouble('bad_answer', `${rpc.name}: getrawtransaction did not answer a hex string`);
  return bytes;
}
