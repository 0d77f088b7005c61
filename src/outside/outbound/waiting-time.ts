// How long calls have waited for their turn here: what they wait for is no doing of their servers.

export type WaitingTime = {
  /** Does a piece of work when its turn comes, and counts the time until then. What waits at the same time counts once. */
  counted(piece: () => void): () => void;
  /** Milliseconds so far, with those of what waits now. */
  ms(): number;
};

/** Nothing has waited yet. @param nowMs of a steady clock */
export function waitingTime(nowMs: () => number = () => performance.now()): WaitingTime {
  let [waiting, sinceMs, beforeMs] = [0, 0, 0];
  const now = (): number => (waiting === 0 ? 0 : nowMs() - sinceMs);
  return {
    counted(piece) {
      if (waiting === 0) sinceMs = nowMs();
      waiting += 1;
      return () => {
        if (waiting === 1) beforeMs += now();
        waiting -= 1;
        piece();
      };
    },
    ms: () => beforeMs + now(),
  };
}
