// The part of a watcher's pass that asks our own node for double-spend proofs (Bitcoin Cash) of the payments in its mempool. Nothing is
// credited without a block anyway, and the chain decides who loses: a proof is only an alarm.
import type { ChainPort } from '../core/ports.ts';
import { readWaiting } from '../store/chain/payment-facts.ts';
import type { ChainContext } from './chain-context.ts';

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
