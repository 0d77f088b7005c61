// What merchants' servers have computed in the thread that all share, so that whoever takes much of it does not go on among the others.

/** CPU for one part that came from a server: whatever it was, others have waited for so long. */
export const DEAR_PART_MS = 20;
/** CPU for each call. An ordinary one takes less than half a millisecond, a new connection two more. */
const DEAR_CALL_MS = 5;
/** Less than this is no matter, in so much time. */
const LEAST_MS = 1_000;
const WITHIN_MS = 10_000;

export type MerchantCosts = {
  /** A call begins. */
  call(merchantId: bigint): void;
  /** So much CPU was taken by a part of what his servers sent. */
  took(merchantId: bigint, cpuMs: number): void;
  /** Whether he has taken much since this was asked the last time. */
  wereDear(merchantId: bigint): boolean;
};

/** Of one thread. @param nowMs of a steady clock */
export function merchantCosts(nowMs: () => number = () => performance.now()): MerchantCosts {
  let costs = new Map<bigint, { calls: number; ms: number }>();
  let sinceMs = nowMs();
  const dear = new Set<bigint>();
  function costsOf(merchantId: bigint): { calls: number; ms: number } {
    if (nowMs() - sinceMs >= WITHIN_MS) [costs, sinceMs] = [new Map(), nowMs()];
    const known = costs.get(merchantId) ?? { calls: 0, ms: 0 };
    costs.set(merchantId, known);
    return known;
  }
  return {
    call(merchantId) {
      costsOf(merchantId).calls += 1;
    },
    took(merchantId, cpuMs) {
      const all = costsOf(merchantId);
      all.ms += cpuMs;
      if (cpuMs >= DEAR_PART_MS || (all.ms >= LEAST_MS && all.ms >= all.calls * DEAR_CALL_MS)) dear.add(merchantId);
    },
    wereDear: (merchantId) => dear.delete(merchantId),
  };
}
