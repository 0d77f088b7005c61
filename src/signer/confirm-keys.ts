// Compares the account keys in the database with the signer's own, and gives a currency without a key the signer's. Nothing is derived from
// a signer's key that was not confirmed here.
import type { CurrencyCode } from '../core/currency.ts';
import type { SignerAccount } from '../core/signer-wire.ts';
import { addSignerKey, confirmKey, distrustKey, listKeys } from '../store/chain/xpubs.ts';
import type { Database } from '../store/postgres/connect.ts';

export type KeyComparison = {
  readonly confirmed: readonly CurrencyCode[];
  readonly added: readonly CurrencyCode[];
  /** Currencies that receive to an imported key. */
  readonly imported: readonly CurrencyCode[];
  /**
   * Keys in use that the database calls the signer's although they are not: a changed database or another seed. No longer trusted from now
   * on.
   */
  readonly mismatched: readonly CurrencyCode[];
  /** The same among keys that are no longer in use: this signer cannot spend payments to their addresses. */
  readonly retiredMismatched: readonly CurrencyCode[];
  /** None of the database's signer keys is ours: another installation's database or signer folder. Nothing was written. */
  readonly foreign: boolean;
};

/** @param firstIndex called once when keys are given to this database: the index its addresses begin at */
export async function compareKeys(
  db: Database,
  accounts: readonly SignerAccount[],
  at: Date,
  firstIndex: () => Promise<number>,
): Promise<KeyComparison> {
  const own = new Map(accounts.map((account) => [account.currency, account.xpub]));
  const outcome: Record<Exclude<keyof KeyComparison, 'foreign'>, CurrencyCode[]> = {
    confirmed: [],
    added: [],
    imported: [],
    mismatched: [],
    retiredMismatched: [],
  };
  const before = await listKeys(db);
  const signers = before.filter((key) => key.origin === 'signer');
  const used = signers.filter((key) => key.retiredAt === null).map((key) => key.currency);
  if (used.length > 0 && accounts.length > 0 && !signers.some((key) => own.get(key.currency) === key.xpub)) {
    // a start on the wrong folder must not invalidate the keys of the signer that they belong to
    return { ...outcome, mismatched: used, foreign: true };
  }
  const inUse = new Set(before.filter((key) => key.retiredAt === null).map((key) => key.currency));
  const missing = [...own].filter(([currency]) => !inUse.has(currency));
  const nextIndex = missing.length === 0 ? 0 : await firstIndex();
  for (const [currency, xpub] of missing) {
    if (await addSignerKey(db, { currency, xpub, at, nextIndex })) outcome.added.push(currency);
  }
  for (const key of await listKeys(db)) {
    const used = key.retiredAt === null;
    if (key.origin === 'imported') {
      if (used) outcome.imported.push(key.currency);
    } else if (own.get(key.currency) === key.xpub) {
      await confirmKey(db, key.id, at);
      if (used && !outcome.added.includes(key.currency)) outcome.confirmed.push(key.currency);
    } else {
      await distrustKey(db, key.id);
      outcome[used ? 'mismatched' : 'retiredMismatched'].push(key.currency);
    }
  }
  return { ...outcome, foreign: false };
}

/** The error message for keys that do not match; null when all do. */
export function mismatchMessage(comparison: KeyComparison): string | null {
  if (comparison.foreign) {
    return (
      "the database's account keys are another signer's: not one of them comes from this seed. The database or the signer folder belongs to " +
      'another installation; nothing was changed.'
    );
  }
  if (comparison.mismatched.length === 0) return null;
  return (
    `the database holds account keys of ${comparison.mismatched.join(', ')} that this signer's seed does not give: nothing is derived from ` +
    'them any more. Either the database or the signer folder belongs to another installation, or the stored key was changed.'
  );
}
