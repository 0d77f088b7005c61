// What the signer has signed for a batch, and its answer did not reach us, is written back as what it was.
import type { SignedTransaction } from '../../core/signer-wire.ts';
import type { Context } from '../../flow/context.ts';
import { whyLeft } from '../../flow/payouts/after-restore/never-sent.ts';
import { type Compared, restoreSignature } from '../../flow/payouts/after-restore/restored-signatures.ts';
import type { DriverOptions } from './driver-options.ts';

type Writing = {
  /** What is known of what has left; absent: outputs were compared. */
  readonly compared?: Compared;
  /** Told of each that was signed for payouts which this database does not know. */
  readonly onUnknown?: (signed: SignedTransaction) => void;
  /** Whether the database is still the one for which the signer was asked: what is known of what has left says nothing of another one. */
  readonly goesOn?: () => boolean;
};

/** @returns how many transactions the signer names; null when it does not answer, or the database was replaced meanwhile */
export async function writeBack(
  ctx: Context,
  { signing, onTrouble }: Pick<DriverOptions, 'signing' | 'onTrouble'>,
  batchId: string,
  { compared = 'compared', onUnknown = () => undefined, goesOn = () => true }: Writing = {},
): Promise<number | null> {
  try {
    const { transactions } = await signing.signed({ after: 0, batchId });
    for (const signed of transactions) {
      if (!goesOn()) return null;
      const restored = await restoreSignature(ctx, signed, compared);
      if (restored === 'left') onTrouble(whyLeft(signed));
      if (restored === 'unknown_payout') onUnknown(signed);
    }
    return transactions.length;
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === undefined) throw error;
    onTrouble(`batch ${batchId}: the signer cannot be asked what it has signed: ${message}`);
    return null;
  }
}
