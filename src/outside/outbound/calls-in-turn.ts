// Calls that begin when it is the turn of the merchant for whom they are made.
import { FAILED_HERE, type Outbound, type OutboundRequest, type OutboundResult } from '../../core/outbound.ts';
import { CONNECT_TIMEOUT } from './outbound.ts';
import type { Turns } from './turns.ts';

/** For whom a thread works that makes a call of the operator. */
export const NOBODY = 0n;
/** Whoever had a smaller part of the time of a call than this has not shown that he is away. */
const LEAST_PART = 0.5;

export type CallRequest = OutboundRequest & {
  /** The time that it had at first; some of it went by in a thread that ended. Default: `withinMs`. */
  readonly wholeMs?: number;
};

/**
 * It fails when its time is over, or nobody waits for it any more, whether its turn has come or not.
 * @param nowMs of a steady clock. The time that a call has begins with this, and not with its turn.
 */
export function callInTurn(
  outbound: Pick<Outbound, 'call'>,
  turns: Pick<Turns, 'begin'>,
  { wholeMs, ...request }: CallRequest,
  nowMs: () => number = () => performance.now(),
): Promise<OutboundResult> {
  const askedMs = nowMs();
  const sinceMs = (): number => Math.round(nowMs() - askedMs);
  function notBegun(): OutboundResult {
    // a timer may be a part of a millisecond early: nothing is left of its time all the same
    const tookMs = Math.max(sinceMs(), request.withinMs);
    return { kind: 'failed', failure: FAILED_HERE, reason: 'its turn did not come', tookMs, waitedMs: tookMs, hasNotBegun: true };
  }
  async function call(): Promise<OutboundResult> {
    const beganMs = sinceMs();
    const withinMs = request.withinMs - beganMs;
    if (withinMs <= 0) return notBegun();
    const result = await outbound.call({ ...request, withinMs });
    const tookMs = beganMs + result.tookMs;
    if (result.kind === 'answered' || request.signal?.aborted === true) return { ...result, tookMs };
    const waitedMs = beganMs + (result.waitedMs ?? 0);
    const isLate =
      result.failure === 'timed_out'
        ? request.withinMs - waitedMs < (wholeMs ?? request.withinMs) * LEAST_PART
        : result.reason === CONNECT_TIMEOUT && waitedMs - beganMs > result.tookMs * LEAST_PART;
    if (!isLate) return { ...result, tookMs };
    return { kind: 'failed', failure: FAILED_HERE, reason: `its turn came late: ${result.reason}`, tookMs, waitedMs };
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
