// What merchants' servers have computed in the thread that all share, so that whoever takes much of it does not go on among the others.

/** CPU for one part that came from a server: whatever it was, others have waited for so long. */
export const DEAR_PART_MS = 20;
/** CPU for each call. An ordinary one takes less than half a millisecond, a new connection two more. */
const DEAR_CALL_MS = 5;
/** Less than this is no matter, in so much time. */
const LEAST_MS = 1_000;
const WITHIN_MS = 10_000;
/** From then on he is called from elsewhere, and what is under way here has ended. */
const OVER_FOR_MS = 60_000;

export type MerchantCosts = {
  /** A call begins. */
  call(merchantId: bigint): void;
  /** So much CPU was taken by a part of what his servers sent. */
  took(merchantId: bigint, cpuMs: number): void;
  /** Whether he has taken much since this was asked the last time. */
  wereDear(merchantId: bigint): boolean;
  /** Whether he has taken so much that nothing more is computed for him here, also of what is under way. */
  isOver(merchantId: bigint): boolean;
};
type Taken = { calls: number; ms: number /** Of that by parts which are dear. */; dearMs: number };

/** Of one thread. @param isForAll whether all share it, not those alone who are dear @param nowMs of a steady clock */
export function merchantCosts(isForAll: boolean, nowMs: () => number = () => performance.now()): MerchantCosts {
  let costs = new Map<bigint, Taken>();
  let sinceMs = nowMs();
  const dear = new Set<bigint>();
  /** Until when. */
  const over = new Map<bigint, number>();
  function costsOf(merchantId: bigint): Taken {
    if (nowMs() - sinceMs >= WITHIN_MS) [costs, sinceMs] = [new Map(), nowMs()];
    const known = costs.get(merchantId) ?? { calls: 0, ms: 0, dearMs: 0 };
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
      const isDearPart = cpuMs >= DEAR_PART_MS;
      if (isDearPart) all.dearMs += cpuMs;
      const isMuch = all.dearMs >= LEAST_MS || (all.ms >= LEAST_MS && all.ms >= all.calls * DEAR_CALL_MS);
      if (isDearPart || isMuch) dear.add(merchantId);
      if (isForAll ? isMuch : all.dearMs >= LEAST_MS) over.set(merchantId, nowMs() + OVER_FOR_MS);
    },
    wereDear: (merchantId) => dear.delete(merchantId),
    isOver: (merchantId) => (over.get(merchantId) ?? Number.NEGATIVE_INFINITY) > nowMs(),
  };
}
