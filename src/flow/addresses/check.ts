// The self-check of receiving addresses: addresses that were given out are derived again by other libraries.
import type { CurrencyCode } from '../../core/currency.ts';
import { type GivenAddress, givenAddresses } from '../../store/chain/address-ranges.ts';
import { listKeys, type StoredKey } from '../../store/chain/xpubs.ts';
import type { AddressContext } from './pool.ts';

/** Whether one of the currency's keys gives this address and script at its index. */
export async function verifyAddress(ctx: AddressContext, given: GivenAddress, keys: readonly StoredKey[]): Promise<boolean> {
  const script = Buffer.from(given.script);
  for (const key of keys) {
    if (key.currency !== given.currency || given.index >= key.nextIndex) continue;
    const second = await rederive(ctx, key, given.index);
    if (second !== null && second.address === given.address && script.equals(second.script)) return true;
  }
  return false;
}

/** What a stored key gives at an index; null when it is no valid key, and so gives nothing. */
async function rederive(ctx: AddressContext, key: StoredKey, index: number) {
  try {
    return await ctx.ports.addresses.rederive(key.currency, key.xpub, index);
  } catch {
    return null;
  }
}

export type AddressCheck = {
  readonly checked: number;
  /** Transactions whose address none of our keys gives. */
  readonly wrong: readonly { readonly transactionId: string; readonly currency: CurrencyCode; readonly address: string }[];
};

/** Checks the newest addresses that were given out, at most `limit` of them (about a millisecond each). */
export async function verifyAddresses(ctx: AddressContext, limit: number): Promise<AddressCheck> {
  const keys = await listKeys(ctx.db);
  const wrong: AddressCheck['wrong'][number][] = [];
  const given = await givenAddresses(ctx.db, limit);
  for (const one of given) {
    if (!(await verifyAddress(ctx, one, keys)))
      wrong.push({ transactionId: one.transactionId, currency: one.currency, address: one.address });
  }
  return { checked: given.length, wrong };
}
