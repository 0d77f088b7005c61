// Whether an address is one of this installation's by its keys, and not only by a row of the database: money that is booked to its transaction
// leaves no trace on a chain that would show otherwise.
import type { CurrencyCode } from '../../core/currency.ts';
import { listKeys } from '../../store/chain/xpubs.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

/** Whether an account key of the currency, in use now or earlier, gives this output script at this index (BIP32). */
export async function isDerivedHere(
  ctx: Context,
  sql: Sql,
  currency: CurrencyCode,
  { script, index }: { readonly script: Uint8Array; readonly index: bigint | null },
): Promise<boolean> {
  if (index === null) return false;
  const keys = (await listKeys(sql)).filter((key) => key.currency === currency);
  return keys.some(({ xpub }) => {
    const derived = ctx.ports.addresses.of(currency, xpub).derive(Number(index));
    return Buffer.from(derived.script).equals(script);
  });
}
