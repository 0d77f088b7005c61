// The part of a watcher's pass that asks our own node what it knows of single payments. Locks (Dash): a payment that its quorums have locked
// is as good as a deep one; only the node's present answer counts, so a lock that it no longer reports is removed. Double-spend proofs (Bitcoin
// Cash): nothing is credited without a block anyway, and the chain decides who loses, so a proof is only an alarm.
import type { BlockRef } from '../../core/block-ref.ts';
import { finalDepth } from '../../core/confirmations.ts';
import type { ChainPort } from '../../core/ports.ts';
import { type ChainCursor, holdCursor } from '../../store/chain/blocks.ts';
import { readWaiting } from '../../store/chain/payment-facts.ts';
import { isUnfinalizedUpTo, lockFinalized, readLockable, readLocksOf, recordLocks } from '../../store/chain/payment-locks.ts';
import { wakeJudge } from '../../store/chain/sightings.ts';
import { ROWS_AT_ONCE } from '../../store/postgres/row-ids.ts';
import type { ChainContext } from './context.ts';
import { createNodeQueryRotation, type NodeQueryRotation } from './node-query-rotation.ts';

/**
 * Reads and records the locks of payments that are not final yet, as many as are asked about in one pass; does nothing on a chain whose
 * rules use no locks.
 * @returns whether there are such payments: their locks must be asked for again
 */
export async function lookAtLocks(
  ctx: ChainContext,
  port: ChainPort,
  cursor: ChainCursor,
  inTurn: NodeQueryRotation,
): Promise<boolean> {
  const final = finalDepth(port.currency);
  if (final.lock === null) return false;
  if (port.finalized !== undefined) return lookAtFinalized(ctx, port, cursor, await port.finalized());
  const open = await readLockable(ctx.db, port.currency, cursor.height - final.depth);
  if (open.length === 0) return false;
  const asked = new Set(inTurn.next(open.map((one) => one.txid)));
  const locks = await port.locks([...asked]);
  const isOther = ({ txid, lock }: (typeof open)[number]): boolean => (locks.get(txid) ?? null) !== lock;
  const txids = open.filter((one) => asked.has(one.txid) && isOther(one)).map((one) => one.txid);
  if (txids.length === 0) return true;
  const payments = await readLocksOf(ctx.db, port.currency, [...new Set(txids)]);
  const changed = payments.filter(isOther).map((one) => ({ ...one, lock: locks.get(one.txid) ?? null }));
  await ctx.db.transaction(async (sql) => {
    await holdCursor(sql, port.currency, cursor);
    await recordLocks(sql, changed);
    await wakeJudge(sql, port.currency);
  });
  return true;
}

/**
 * Marks what lies in or below the chain's final block, as far as it is read.
 * @returns false: nothing about single payments is asked, and a new final block comes with new blocks
 */
async function lookAtFinalized(
  ctx: ChainContext,
  { currency }: ChainPort,
  cursor: ChainCursor,
  final: BlockRef | null,
): Promise<false> {
  if (final === null || final.height > cursor.height || !(await isUnfinalizedUpTo(ctx.db, currency, final.height))) return false;
  for (let marked = ROWS_AT_ONCE; marked === ROWS_AT_ONCE; ) {
    marked = await ctx.db.transaction(async (sql) => {
      await holdCursor(sql, currency, cursor);
      const count = await lockFinalized(sql, currency, final);
      if (count > 0) await wakeJudge(sql, currency);
      return count;
    });
  }
  return false;
}

/**
 * One line for each payment in the mempool whose inputs were signed for twice, as far as our node knows; none on chains without proofs.
 * `waiting`: there are such payments to ask for again.
 */
export type LookAtProofs = () => Promise<{ waiting: boolean; alarms: string[] }>;

/** Each look asks about as many as are asked about in one pass; a proof does not go away while its payment waits. */
export function createProofLook(ctx: ChainContext, port: ChainPort): LookAtProofs {
  const inTurn = createNodeQueryRotation();
  const proven = new Set<string>();
  return async () => {
    if (port.doubleSpendProofs === null) return { waiting: false, alarms: [] };
    const waiting = await readWaiting(ctx.db, port.currency);
    const txids = new Set(waiting.map((one) => one.txid));
    for (const txid of proven) if (!txids.has(txid)) proven.delete(txid);
    const asked = inTurn.next(txids);
    if (asked.length > 0) for (const txid of await port.doubleSpendProofs(asked)) proven.add(txid);
    const alarms = waiting
      .filter((one) => proven.has(one.txid))
      .map((one) => `payment ${one.txid} of ${one.transactionId}: our node has proof that its inputs were signed for twice`);
    return { waiting: waiting.length > 0, alarms };
  };
}
