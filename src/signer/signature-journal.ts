// Every signature that this signer ever made, in a chained file of its own folder: a line is on disk before its bytes are answered.
import { join } from 'node:path';
import type { Network } from '../core/currency.ts';
import type { SignedTransaction } from '../core/signer-wire.ts';
import { KEEP_AND_ASK, openChainedFile } from './chained-file.ts';
import { noteAges, type SetAndSteady } from './limits.ts';
import { createSignatureIndex, type SignatureIndex } from './signature-index.ts';

export type SignatureJournal = {
  readonly index: SignatureIndex;
  /** Resolves when it is on disk. After a failure that leaves in doubt what is there, nothing can be appended until it is opened again. */
  append(signed: Omit<SignedTransaction, 'sequence'>): Promise<SignedTransaction>;
  read(sequence: number): Promise<SignedTransaction>;
  /** How many signatures there are; they are numbered from 1. */
  count(): number;
  /** What was cut off when it was opened, in bytes; 0 = nothing. */
  readonly cutOff: number;
  close(): Promise<void>;
};

export const SIGNATURES = 'signatures.jsonl';
const WHAT = 'every signature of a Bursar signer; never edit it, never put an older copy of this file back';

/** @param folder the signer's own. Throws DamagedFile when a line in it was changed, or when it belongs to another network */
export async function openSignatureJournal(folder: string, network: Network, clocks: SetAndSteady): Promise<SignatureJournal> {
  const index = createSignatureIndex();
  const file = await openChainedFile(join(folder, SIGNATURES), {
    network,
    what: WHAT,
    way: KEEP_AND_ASK,
    take(text, number) {
      const signed = JSON.parse(text) as SignedTransaction;
      if (signed.sequence !== number) return false;
      index.add(signed);
      return true;
    },
  });
  noteAges(clocks, index.leaving());
  return {
    index,
    cutOff: file.cutOff,
    count: file.count,
    async append(content) {
      const signed: SignedTransaction = { sequence: file.count() + 1, ...content };
      await file.append(JSON.stringify(signed));
      index.add(signed);
      return signed;
    },
    read: async (sequence) => JSON.parse(await file.read(sequence)) as SignedTransaction,
    close: file.close,
  };
}
