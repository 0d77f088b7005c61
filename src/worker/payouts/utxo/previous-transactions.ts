// The transactions that made the outputs of a batch, for the signer: it takes no amount on trust where signatures do not cover it.
import type { UtxoCode } from '../../../core/currency.ts';
import { coversAmounts } from '../../../core/payouts/outgoing-fees.ts';
import type { PayingPort } from '../../../core/ports.ts';
import type { Context } from '../../../flow/context.ts';
import { madeIn } from '../../../store/payouts/previous-transactions.ts';

/** Whether the signatures of a currency leave the amounts of inputs out (P2PKH before BIP143). */
export function needsPrevious(currency: UtxoCode): boolean {
  return !coversAmounts(currency);
}

/**
 * The raw transactions (hex) that made the inputs of a batch.
 * @throws NodeTrouble when the node cannot be read
 * @returns null while one of them is in no block
 */
export async function readPreviousTransactions(
  ctx: Context,
  port: PayingPort,
  batchId: string,
): Promise<readonly string[] | null> {
  const found: string[] = [];
  const byBlock = new Map<string, Set<string>>();
  for (const { txid, raw, blockHash } of await madeIn(ctx.db, batchId, port.currency)) {
    if (raw !== null) found.push(raw.toString('hex'));
    else if (blockHash === null) return null;
    else byBlock.set(blockHash, (byBlock.get(blockHash) ?? new Set()).add(txid));
  }
  for (const [hash, txids] of byBlock) {
    const read = await port.minedTransactions(hash, txids);
    if (read.size < txids.size) return null;
    for (const raw of read.values()) found.push(Buffer.from(raw).toString('hex'));
  }
  return found;
}
