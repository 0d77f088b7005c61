// The part of a watcher's pass that asks our own node what it knows of single payments. Locks (Dash): a payment that its quorums have locked
// is as good as a deep one; only the node's present answer counts, so a lock that it no longer reports is removed. Double-spend proofs (Bitcoin
// Cash): nothing is credited without a block anyway, and the chain decides who loses, so a proof is only an alarm.
import { finalDepth } from '../core/confirmations.ts';
import type { ChainPort } from '../core/ports.ts';
import { type ChainCursor, holdCursor } from '../store/chain/blocks.ts';
import { readWaiting } from '../store/chain/payment-facts.ts';
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

/**
 * One line for each payment in the mempool whose inputs were signed for twice, as far as our node knows; none on chains without proofs.
 * `waiting`: there are such payments to ask for again.
 */
export async function lookAtProofs(ctx: ChainContext, port: ChainPort): Promise<{ waiting: boolean; alarms: string[] }> {
  if (port.doubleSpendProofs === null) return { waiting: false, alarms: [] };
  const waiting = await readWaiting(ctx.db, port.currency);
  if (waiting.length === 0) return { waiting: false, alarms: [] };
  const proven = await port.doubleSpendProofs([...new Set(waiting.map((one) => one.txid))]);
  const alarms = waiting
    .filter((one) => proven.has(one.txid))
    .map((one) => `payment ${one.txid} of ${one.transactionId}: our node has proof that its inputs were signed for twice`);
  return { waiting: true, alarms };
}
