// Calls that begin when it is the turn of the merchant for whom they are made.
import { FAILED_HERE, type Outbound, type OutboundRequest, type OutboundResult } from '../../core/outbound.ts';
import type { Turns } from './turns.ts';

/** For whom a thread works that makes a call of the operator. */
export const NOBODY = 0n;

/** @param nowMs of a steady clock. The time that a call has begins with this, and not with its turn. */
export function callInTurn(
  outbound: Outbound,
  turns: Turns,
  request: OutboundRequest,
  nowMs: () => number = () => performance.now(),
): Promise<OutboundResult> {
  const askedMs = nowMs();
  async function call(): Promise<OutboundResult> {
    const waitedMs = Math.round(nowMs() - askedMs);
    const withinMs = request.withinMs - waitedMs;
    if (withinMs <= 0) return { kind: 'failed', failure: FAILED_HERE, reason: 'its turn did not come', tookMs: waitedMs };
    const result = await outbound.call({ ...request, withinMs });
    return { ...result, tookMs: waitedMs + result.tookMs };
  }
  return new Promise((resolve) => turns.take(request.merchantId ?? NOBODY, () => resolve(call())));
}
