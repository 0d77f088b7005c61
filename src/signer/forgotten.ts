// What has left in the last day and is in none of the signer's journals, because its folder was put back to an older copy, or lost: the database, if it
// was not put back with it, still knows. It counts for the limits like everything that the journals have.
import { payoutCurrency } from '../core/currency.ts';
import { atLeastZero, greatest, minus } from '../core/money.ts';
import { leftOnChainSince, leftOverLightningSince } from '../store/payouts/after-restore/left-since.ts';
import type { Database } from '../store/postgres/connect.ts';
import type { PaymentJournal } from './lightning/payment-journal.ts';
import { DAY_MS } from './limits.ts';
import { type Leaving, leavesOf, type SignatureIndex } from './signature-index.ts';

export type ForgottenOptions = {
  /** Under the role bursar_signer. */
  readonly db: Database;
  readonly signatures: () => Promise<{ readonly index: Pick<SignatureIndex, 'ofBatch'> }>;
  readonly payments: () => Promise<Pick<PaymentJournal, 'ofPayout'>>;
  /** The system's clock. */
  readonly now: () => number;
  /** Told once, where there is any. */
  readonly report: (line: string) => void;
};

/**
 * Reads it when it is first needed: while a signer runs its journals know everything that leaves. The database can only add to what counts, so
 * whoever writes into it gets nothing signed by that.
 */
export function createForgotten(options: ForgottenOptions): () => Promise<readonly Leaving[]> {
  let known: readonly Leaving[] | null = null;
  return async () => {
    if (known !== null) return known;
    const sinceMs = options.now() - DAY_MS;
    const found = [...(await onChain(options, sinceMs)), ...(await overLightning(options, sinceMs))];
    if (found.length > 0)
      options.report(
        'what left in the last day by the word of the database is not in the journals, which are older copies or were lost: it counts for the limits',
      );
    known = found;
    return known;
  };
}

async function onChain({ db, signatures }: ForgottenOptions, sinceMs: number): Promise<Leaving[]> {
  const { index } = await signatures();
  /** The most that a transaction of a batch lets leave of a currency, up to the one that is looked at. */
  const highest = new Map<string, bigint>();
  const found: Leaving[] = [];
  for (const { batchId, txid, currency, purpose, paid, fee, call, signedAtMs } of await leftOnChainSince(db, sinceMs)) {
    const isKnown = index.ofBatch(batchId).some((one) => one.txid === txid);
    const evm = call === null ? {} : { evm: { ...call, ...(purpose === 'payout' ? {} : { purpose }) } };
    for (const [what, now] of leavesOf({ request: { currency, outputs: [{ amount: paid }], ...evm }, fee })) {
      const key = `${batchId} ${what}`;
      const before = highest.get(key) ?? 0n;
      highest.set(key, greatest(before, now));
      if (!isKnown) found.push({ currency: what, atMs: signedAtMs, amount: atLeastZero(minus(now, before)) });
    }
  }
  return found;
}

async function overLightning({ db, payments }: ForgottenOptions, sinceMs: number): Promise<Leaving[]> {
  const journal = await payments();
  const currency = payoutCurrency('lightning').code;
  return (await leftOverLightningSince(db, sinceMs))
    .filter(({ payoutId }) => journal.ofPayout(payoutId) === null)
    .map(({ takes, askedAtMs }) => ({ currency, atMs: askedAtMs, amount: takes }));
}
