// Outputs of our own at addresses of chain 1 of the signer's accounts: change, and the service's capital, which is booked here.
import { finalDepth } from '../../core/confirmations.ts';
import { type CurrencyCode, chainRow, ETHER, type EvmCode } from '../../core/currency.ts';
import { type CapitalOutput, capitalEntry, capitalLostEntry } from '../../core/payouts/capital.ts';
import type { DerivedAddress } from '../../core/ports.ts';
import { spendingKey } from '../../store/chain/xpubs.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { insertOwnAddress, lockGone, lockUnbooked, markBooked, nextOwnIndex } from '../../store/payouts/own-outputs.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { HOT_INDEX } from '../evm/batches.ts';

/**
 * Gives out the next addresses; the watchers look for them from the moment this returns.
 * @returns null while the signer has not confirmed a key of this currency
 */
export async function newOwnAddresses(
  ctx: Context,
  currency: CurrencyCode,
  count: number,
): Promise<readonly DerivedAddress[] | null> {
  const key = await spendingKey(ctx.db, currency);
  if (key === null) return null;
  return ctx.db.transaction(async (sql) => {
    await lockOutputs(sql, currency);
    const first = await nextOwnIndex(sql, key.id);
    const deriver = ctx.ports.addresses.ownOf(currency, key.xpub);
    const made = Array.from({ length: count }, (_, n) => deriver.derive(first + n));
    for (const address of made) await insertOwnAddress(sql, key.id, currency, address);
    return made;
  });
}

/**
 * Books what lies at our own addresses at final depth and is no change of ours: capital of the service. From then on batches spend it, so what a
 * miner has made with his block waits until it is mature: our change is known to everybody, and no node takes a batch before. What a reorganisation
 * has taken out of its block since is no capital until it is at that depth again.
 */
export async function bookCapital(ctx: Context, currency: CurrencyCode): Promise<void> {
  await ctx.db.transaction(async (sql) => {
    await book(ctx, sql, currency, await lockGone(sql, currency), false);
    const { coinbaseMaturity: maturity } = chainRow(currency);
    const asked = { depth: finalDepth(currency).depth, maturity, nowMs: ctx.ports.clock.now() };
    await book(ctx, sql, currency, await lockUnbooked(sql, currency, asked), true);
  });
}

async function book(
  ctx: Context,
  sql: Sql,
  currency: CurrencyCode,
  outputs: readonly CapitalOutput[],
  isHere: boolean,
): Promise<void> {
  const entry = isHere ? capitalEntry : capitalLostEntry;
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    outputs.map((output) => ({ entry: entry(currency, output), transactionId: null, atMs })),
  );
  await markBooked(sql, currency, outputs, isHere);
}

/** Records the address from which a currency of Ethereum's chain leaves, and that ether may come to it; false while the signer has no key. */
export async function ensureHotAddress(ctx: Context, currency: EvmCode): Promise<boolean> {
  const key = await spendingKey(ctx.db, currency);
  if (key === null) return false;
  const address = ctx.ports.addresses.ownOf(currency, key.xpub).derive(HOT_INDEX);
  for (const code of new Set<EvmCode>([currency, ETHER])) await insertOwnAddress(ctx.db, key.id, code, address);
  return true;
}
