// When a whole mempool is listed: as often as that is cheap, and at once where somebody asks for it.

/** A watcher spends at most this share (1/20) of its time on whole lists, as long as pushes report what is new. */
const LISTING_SHARE = 20;
const LONGEST_PAUSE_MS = 10_000;

export type MempoolListings = {
  /** The next look lists all, however recent the last list is. */
  ask(): void;
  /** Whether a look that begins now lists all. */
  isDue(): boolean;
  /**
   * A look that lists all begins.
   * @returns what to call at its end; false = a list was asked for in between, so the next look lists all again
   */
  begin(): () => boolean;
};

/** The first look lists all. */
export function createMempoolListings(): MempoolListings {
  let nextMs = 0;
  let asked = 0;
  return {
    ask() {
      asked++;
      nextMs = 0;
    },
    isDue: () => performance.now() >= nextMs,
    begin() {
      const beganMs = performance.now();
      const askedBefore = asked;
      return () => {
        if (asked !== askedBefore) return false;
        const endedMs = performance.now();
        nextMs = endedMs + Math.min(LONGEST_PAUSE_MS, (endedMs - beganMs) * LISTING_SHARE);
        return true;
      };
    },
  };
}
