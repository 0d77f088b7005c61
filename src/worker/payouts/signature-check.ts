// Whether every signature of the signer is in this database. A database that was put back to an older copy may have forgotten some, and a signer
// whose journal is an older copy numbers anew what it signs: before both are excluded, nothing new is signed in any currency.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { Outpoint } from '../../core/ports.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import type { Context } from '../../flow/context.ts';
import { whyLeft } from '../../flow/payouts/after-restore/never-sent.ts';
import { restoreSignature } from '../../flow/payouts/after-restore/restored-signatures.ts';
import { firstWaiting } from '../../store/payouts/after-restore/waiting-signatures.ts';
import { lastSignature } from '../../store/payouts/attempts.ts';
import type { Signing } from './driver-options.ts';

export type SignatureCheck = {
  /**
   * Asks the signer where that is needed, and writes back what is missing here.
   * @param signsSoon something waits for a signature: whether the signer still has the newest one is asked again
   * @returns whether all are here
   */
  look(signsSoon: boolean): Promise<boolean>;
  /** Whether the last look has found all of them, and the database is still the one that was looked at. */
  holds(): boolean;
  /** Another number than before: whatever was compared with a chain must be compared again. */
  version(): number;
  /** Transactions that were signed for payouts which this database does not know, by txid: nobody can take them back, so they are sent. */
  unknown(currency: CurrencyCode): Map<string, Uint8Array>;
  /** Takes note of one of these. */
  noteUnknown(signed: SignedTransaction): void;
  /** What was signed for batches that are not here, or are here without it, by batch in the order of signing: it waits until outputs were compared. */
  waiting(currency: CurrencyCode): Map<string, Waiting>;
};

/** What waits of a batch. */
export type Waiting = {
  readonly txids: readonly string[];
  /** Everything that one of them spends. */
  readonly inputs: readonly Outpoint[];
};

/** @param onTrouble told why nothing new is signed */
export function createSignatureCheck(
  ctx: Context,
  { signing, onTrouble }: { readonly signing: Signing; readonly onTrouble: (what: string) => void },
): SignatureCheck {
  /** The database whose signatures are complete; null = not compared yet. */
  let complete: number | null = null;
  /** The newest signature here when the signer did not have it. */
  let lost: string | null = null;
  let version = 0;
  const unknown = new Map(CURRENCY_CODES.map((currency) => [currency, new Map<string, Uint8Array>()]));
  const waiting = new Map(CURRENCY_CODES.map((currency) => [currency, new Map<string, Waiting>()]));

  function forget(): void {
    complete = null;
    version += 1;
    for (const batches of waiting.values()) batches.clear();
  }

  async function look(signsSoon: boolean): Promise<boolean> {
    const { generation } = ctx.db.identity;
    if (complete !== null && complete !== generation) forget();
    if (complete === generation && !signsSoon) return true;
    try {
      const last = await lastSignature(ctx.db);
      const isSame = await knows(last);
      if (!isSame && last.txid !== lost) {
        forget();
        lost = last.txid;
      }
      if (complete === generation) return true;
      // what waited before this worker began is asked for again, though something else was stored since
      const first = (await firstWaiting(ctx.db)) ?? Number.POSITIVE_INFINITY;
      for (let after = isSame ? Math.min(last.sequence, first - 1) : 0, more = true; more; ) {
        const page = await signing.signed({ after });
        for (const signed of page.transactions) {
          after = signed.sequence;
          const outcome = await restoreSignature(ctx, signed, 'starting');
          if (outcome === 'waits') noteWaiting(signed);
          if (outcome === 'unknown_payout') noteUnknown(signed);
          if (outcome === 'left') onTrouble(whyLeft(signed));
        }
        more = page.more && page.transactions.length > 0;
      }
    } catch (error) {
      if ((error as { fault?: string }).fault === undefined) throw error;
      onTrouble(`the signer cannot be asked what it has signed: ${(error as Error).message}`);
      return false;
    }
    complete = generation;
    return true;
  }

  /** It is sent like every other, so that a block shows how it ends. Nothing new is signed until an operator has it booked. */
  function noteUnknown({ txid, raw, request }: SignedTransaction): void {
    onTrouble(
      `the signer has signed ${txid} for payouts that this database does not know (bursar payout recover): payouts are stopped`,
    );
    unknown.get(request.currency as CurrencyCode)?.set(txid, Buffer.from(raw, 'hex'));
  }

  function noteWaiting({ txid, request: { batchId, currency, inputs } }: SignedTransaction): void {
    const batches = waiting.get(currency as CurrencyCode);
    const before = batches?.get(batchId);
    // a look that could not be ended is made again
    if (before?.txids.includes(txid) === true) return;
    batches?.set(batchId, { txids: [...(before?.txids ?? []), txid], inputs: [...(before?.inputs ?? []), ...inputs] });
  }

  /** Whether the signer's journal holds the newest signature that is stored here. */
  async function knows({ sequence, txid }: { readonly sequence: number; readonly txid: string | null }): Promise<boolean> {
    if (txid === null) return true;
    const { transactions } = await signing.signed({ after: sequence - 1 });
    return transactions[0]?.txid === txid;
  }

  return {
    look,
    holds: () => complete !== null && complete === ctx.db.identity.generation,
    version: () => version,
    noteUnknown,
    unknown: (currency) => unknown.get(currency) ?? new Map(),
    waiting: (currency) => waiting.get(currency) ?? new Map(),
  };
}
