// What the signer has signed for a batch, and its answer did not reach us, is written back as what it was.
import type { Context } from '../../flow/context.ts';
import { type Compared, restoreSignature, whyLeft } from '../../flow/payouts/after-restore/restored-signatures.ts';
import type { DriverOptions } from './driver-options.ts';

/** @returns how many transactions the signer names; null when it does not answer */
export async function writeBack(
  ctx: Context,
  { signing, onTrouble }: Pick<DriverOptions, 'signing' | 'onTrouble'>,
  batchId: string,
  compared: Compared = 'compared',
): Promise<number | null> {
  try {
    const { transactions } = await signing.signed({ after: 0, batchId });
    for (const signed of transactions) if ((await restoreSignature(ctx, signed, compared)) === 'left') onTrouble(whyLeft(signed));
    return transactions.length;
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === undefined) throw error;
    onTrouble(`batch ${batchId}: the signer cannot be asked what it has signed: ${message}`);
    return null;
  }
}
