// Merchants whose servers took much of the thread that all share. They are called from another one, which nobody shares with them who did not do so.

const DEAR_FOR_MS = 24 * 60 * 60_000;
const MOST = 10_000;
/** From whose server a thread did not come back is not called for so many times as long as it computed: he takes a twentieth of a core at most. */
const RESTS = 20;
const LEAST_REST_MS = 60_000;

export type DearMerchants = {
  isDear(merchantId: bigint): boolean;
  add(merchantId: bigint): void;
  /** From whose server a thread does not come back. @param exited when it has */
  addStuck(merchantId: bigint, exited: Promise<void>): void;
  /** Whether he is not called at all for now. */
  isResting(merchantId: bigint): boolean;
};

/** Of one process; nobody is dear to begin with. @param nowMs of a steady clock */
export function dearMerchants(nowMs: () => number = () => performance.now()): DearMerchants {
  /** Until when each is dear, and until when he rests; whoever was so last at the end. */
  const known = new Map<bigint, { readonly untilMs: number; readonly restsUntilMs: number }>();
  function keep(merchantId: bigint, restsUntilMs: number): void {
    known.delete(merchantId);
    known.set(merchantId, { untilMs: nowMs() + DEAR_FOR_MS, restsUntilMs });
    if (known.size > MOST) known.delete(known.keys().next().value as bigint);
  }
  const restOf = (merchantId: bigint): number => known.get(merchantId)?.restsUntilMs ?? Number.NEGATIVE_INFINITY;
  return {
    isDear: (merchantId) => (known.get(merchantId)?.untilMs ?? Number.NEGATIVE_INFINITY) > nowMs(),
    add: (merchantId) => keep(merchantId, restOf(merchantId)),
    addStuck(merchantId, exited) {
      const beganMs = nowMs();
      keep(merchantId, Number.POSITIVE_INFINITY);
      void exited.then(() => keep(merchantId, nowMs() + Math.max(LEAST_REST_MS, RESTS * (nowMs() - beganMs))));
    },
    isResting: (merchantId) => restOf(merchantId) > nowMs(),
  };
}
