// Calls that begin when it is the turn of the merchant for whom they are made.
import { FAILED_HERE, type Outbound, type OutboundRequest, type OutboundResult } from '../../core/outbound.ts';
import type { Turns } from './turns.ts';

/** For whom a thread works that makes a call of the operator. */
export const NOBODY = 0n;
/** Whoever had a smaller part of the time of a call than this has not shown that he is away. */
const LEAST_PART = 0.5;

/**
 * It fails when its time is over, or nobody waits for it any more, whether its turn has come or not.
 * @param nowMs of a steady clock. The time that a call has begins with this, and not with its turn.
 */
export function callInTurn(
  outbound: Outbound,
  turns: Pick<Turns, 'begin'>,
  request: OutboundRequest,
  nowMs: () => number = () => performance.now(),
): Promise<OutboundResult> {
  const askedMs = nowMs();
  const waitedMs = (): number => Math.round(nowMs() - askedMs);
  function notBegun(): OutboundResult {
    // a timer may be a part of a millisecond early: nothing is left of its time all the same
    const tookMs = Math.max(waitedMs(), request.withinMs);
    return { kind: 'failed', failure: FAILED_HERE, reason: 'its turn did not come', tookMs };
  }
  async function call(): Promise<OutboundResult> {
    const beganMs = waitedMs();
    const withinMs = request.withinMs - beganMs;
    if (withinMs <= 0) return notBegun();
    const result = await outbound.call({ ...request, withinMs });
    const tookMs = beganMs + result.tookMs;
    const isLate = withinMs < request.withinMs * LEAST_PART && request.signal?.aborted !== true;
    if (isLate && result.kind === 'failed' && result.failure === 'timed_out')
      return { kind: 'failed', failure: FAILED_HERE, reason: `its turn came late: ${result.reason}`, tookMs };
    return { ...result, tookMs };
  }
  return new Promise((resolve) => {
    let isOver = false;
    function end(result: () => OutboundResult | Promise<OutboundResult>): void {
      if (isOver) return;
      isOver = true;
      clearTimeout(late);
      request.signal?.removeEventListener('abort', begin);
      resolve(result());
    }
    const begin = (): void => end(call);
    // one that waits for its turn would be taken for a thread that does not answer, which ends with all that is under way
    const late = setTimeout(() => end(notBegun), request.withinMs);
    request.signal?.addEventListener('abort', begin, { once: true });
    turns.begin(request.merchantId ?? NOBODY, begin);
  });
}
