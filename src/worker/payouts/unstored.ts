// What the signer has signed for a batch that is not here, or is here without it, as a worker finds it when it begins. Where the database is no copy of what was
// before, nobody has sent it; where it is one, a forgotten transaction may have paid the same payouts. So it is not sent before everything that has left is
// known, but for what a node shows to have left.
import type { UtxoCode } from '../../core/currency.ts';
import type { Outpoint, PayingPort } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import type { Compared } from '../../flow/payouts/after-restore/restored-signatures.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { type Batch, readBatch } from '../../store/payouts/batch-rows.ts';
import { payingPortOf } from '../chain/context.ts';
import { atTip, reachable } from '../chain/pass-result.ts';
import type { DriverOptions } from './driver-options.ts';
import type { SignatureCheck } from './signature-check.ts';
import { writeBack } from './write-back.ts';

export type Unstored = {
  /** Writes back what a block or a mempool shows: it has left, and what is compared next must know it. */
  writeSeen(): Promise<void>;
  /**
   * Takes note of what blocks or a mempool have shown to somebody else.
   * @returns whether something of that waits here: it is written back first
   */
  noteShown(txids: readonly string[]): boolean;
  /** Writes back the rest, once everything that has left is known. @returns whether nothing waits any more, and nobody has looked anew meanwhile */
  writeRest(): Promise<boolean>;
  /** What was shown may be wrong now: the database was replaced, or the signer has forgotten something. */
  forget(): void;
};

export type UnstoredParts = {
  readonly signatures: SignatureCheck;
  readonly options: DriverOptions;
  /** Whether what waits is still what waited when the run began. */
  readonly goesOn: () => boolean;
};

/** Those of one currency of Bitcoin's family. */
export function createUnstored(ctx: Context, currency: UtxoCode, { signatures, options, goesOn }: UnstoredParts): Unstored {
  const port = payingPortOf(ctx, currency);
  /** What waits, and was shown to somebody else than who is asked here: blocks are read, and nodes get to know of it, meanwhile. */
  const shown = new Set<string>();
  const nodes: readonly Pick<PayingPort, 'rawTransaction'>[] = port.nodes?.() ?? [port];

  /** Whether one of them was shown, a node has it, or a block that was read spends what its batch has by it. */
  async function isShown(batch: Batch | null, txids: readonly string[]): Promise<boolean> {
    if (txids.some((txid) => shown.has(txid))) return true;
    if (batch?.inputs.some(({ spentBy }) => spentBy !== null && txids.includes(spentBy))) return true;
    for (const node of nodes)
      for (const txid of txids) if ((await reachable(() => node.rawTransaction(txid, null))) !== null) return true;
    return false;
  }

  /** Those of these outputs that are spent where the node that is read has the newest block that was read; none where that cannot be said now. */
  async function spentOf(outputs: readonly Outpoint[]): Promise<ReadonlySet<string>> {
    const spent = await reachable(async () => {
      const cursor = await readCursor(ctx.db, currency);
      return cursor === null || (await atTip(port, cursor)) === null ? [] : port.spentOf(outputs);
    });
    return new Set((spent ?? []).map(named));
  }

  const txidsWaiting = (): Set<string> => new Set([...signatures.waiting(currency).values()].flatMap(({ txids }) => txids));

  /** @returns whether it waits no more */
  async function write(batchId: string, compared: Compared): Promise<boolean> {
    const written = await writeBack(ctx, options, batchId, { compared, onUnknown: signatures.noteUnknown, goesOn });
    if (written === null) return false;
    return signatures.waiting(currency).delete(batchId);
  }

  return {
    async writeSeen() {
      const waiting = signatures.waiting(currency);
      if (waiting.size === 0) return;
      const spent = await spentOf([...waiting.values()].flatMap(({ inputs }) => inputs));
      const waits = txidsWaiting();
      for (const [batchId, { txids, inputs }] of waiting) {
        const batch = await readBatch(ctx.db, batchId, { lock: false });
        // it has left, or can be mined no more; of what waits itself nothing is spent
        const isSpent = batch === null && inputs.some((input) => spent.has(named(input)) && !waits.has(input.txid));
        if (!isSpent && !(await isShown(batch, txids))) continue;
        if (await write(batchId, 'seen')) for (const txid of txids) waits.delete(txid);
      }
    },
    noteShown(txids) {
      const waiting = txidsWaiting();
      const found = txids.filter((txid) => waiting.has(txid));
      for (const txid of found) shown.add(txid);
      return found.length > 0;
    },
    async writeRest() {
      const waiting = signatures.waiting(currency);
      for (const batchId of [...waiting.keys()]) {
        if (!goesOn()) return false;
        await write(batchId, 'compared');
      }
      // while the signer was asked another database may have come, and what waits in that is not known yet
      return waiting.size === 0 && goesOn();
    },
    forget: () => shown.clear(),
  };
}

const named = ({ txid, vout }: Outpoint): string => `${txid}:${vout}`;
