// Addresses of our own in the signer's accounts (chain 1): where change and the service's capital go.
import type { UtxoCode } from '../core/currency.ts';
import type { DerivedAddress } from '../core/ports.ts';
import { listKeys } from '../store/chain/xpubs.ts';
import { insertOwnAddress, lockCoins, nextOwnIndex } from '../store/payouts/batches.ts';
import type { Context } from './context.ts';

/**
 * Gives out the next addresses; the watchers look for them from the moment this returns.
 * @returns null while the signer has not confirmed a key of this currency
 */
export async function newOwnAddresses(
  ctx: Context,
  currency: UtxoCode,
  count: number,
): Promise<readonly DerivedAddress[] | null> {
  const keys = await listKeys(ctx.db);
  const key = keys.find((one) => one.currency === currency && one.origin === 'signer' && one.retiredAt === null);
  if (key === undefined || key.confirmedAt === null) return null;
  return ctx.db.transaction(async (sql) => {
    await lockCoins(sql, currency);
    const first = await nextOwnIndex(sql, key.id);
    const deriver = ctx.ports.addresses.ownOf(currency, key.xpub);
    const made = Array.from({ length: count }, (_, n) => deriver.derive(first + n));
    for (const address of made) await insertOwnAddress(sql, key.id, currency, address);
    return made;
  });
}
