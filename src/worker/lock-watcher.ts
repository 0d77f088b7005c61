// The part of a watcher's pass that asks our own node for its locks (Dash): a payment that its quorums have locked is as good as a deep
// one. Only the node's present answer counts, so a lock that it no longer reports is removed.
import { finalDepth } from '../core/confirmations.ts';
import type { ChainPort } from '../core/ports.ts';
import { type ChainCursor, holdCursor } from '../store/chain/blocks.ts';
import { readLockable, recordLocks } from '../store/chain/payment-locks.ts';
import { wakeJudge } from '../store/chain/sightings.ts';
import type { ChainContext } from './chain-context.ts';

/**
 * Reads and records the locks of the payments that are not final yet; does nothing on a chain whose rules use no locks.
 * @returns whether there are such payments: their locks must be asked for again
 */
export async function lookAtLocks(ctx: ChainContext, port: ChainPort, cursor: ChainCursor): Promise<boolean> {
  const final = finalDepth(port.currency);
  if (final.lock === null) return false;
  const open = await readLockable(ctx.db, port.currency, cursor.height - final.depth);
  if (open.length === 0) return false;
  const locks = await port.locks([...new Set(open.map((one) => one.txid))]);
  const changed = open
    .filter((one) => (locks.get(one.txid) ?? null) !== one.lock)
    .map((one) => ({ ...one, lock: locks.get(one.txid) ?? null }));
  if (changed.length === 0) return true;
  await ctx.db.transaction(async (sql) => {
    await holdCursor(sql, port.currency, cursor);
    await recordLocks(sql, changed);
    await wakeJudge(sql, port.currency);
  });
  return true;
}
