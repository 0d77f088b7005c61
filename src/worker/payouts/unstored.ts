// What the signer has signed for a batch that is here without it, as a worker finds it when it begins. Nobody has sent it, unless the database is a copy of
// what was before: so it is not sent either before everything that has left is known. A forgotten transaction may have paid the same payouts.
import type { UtxoCode } from '../../core/currency.ts';
import type { PayingPort } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import { readBatch } from '../../store/payouts/batch-rows.ts';
import { payingPortOf } from '../chain/context.ts';
import { reachable } from '../chain/pass-result.ts';
import type { DriverOptions } from './driver-options.ts';
import type { SignatureCheck } from './signature-check.ts';
import { writeBack } from './write-back.ts';

export type Unstored = {
  /** Writes back what a block or a mempool shows: it has left, and what is compared next must know it. */
  writeSeen(): Promise<void>;
  /** Writes back the rest, once everything that has left is known. @returns whether nothing waits any more */
  writeRest(): Promise<boolean>;
};

/** Those of one currency of Bitcoin's family. */
export function createUnstored(
  ctx: Context,
  currency: UtxoCode,
  { signatures, options }: { readonly signatures: SignatureCheck; readonly options: DriverOptions },
): Unstored {
  const port = payingPortOf(ctx, currency);
  const nodes: readonly Pick<PayingPort, 'rawTransaction'>[] = port.nodes?.() ?? [port];

  async function hasLeft(batchId: string, txids: readonly string[]): Promise<boolean> {
    const batch = await readBatch(ctx.db, batchId, { lock: false });
    if (batch?.inputs.some(({ spentBy }) => spentBy !== null && txids.includes(spentBy))) return true;
    for (const node of nodes)
      for (const txid of txids) if ((await reachable(() => node.rawTransaction(txid, null))) !== null) return true;
    return false;
  }

  return {
    async writeSeen() {
      const waiting = signatures.waiting(currency);
      for (const [batchId, txids] of waiting)
        if ((await hasLeft(batchId, txids)) && (await writeBack(ctx, options, batchId, 'seen')) !== null) waiting.delete(batchId);
    },
    async writeRest() {
      const waiting = signatures.waiting(currency);
      for (const batchId of [...waiting.keys()]) if ((await writeBack(ctx, options, batchId)) !== null) waiting.delete(batchId);
      return waiting.size === 0;
    },
  };
}
