// Growing pauses between tries of something that fails.

export type Backoff = {
  /** It failed once more; returns the pause before the next try in milliseconds. */
  failed(): number;
  succeeded(): void;
};

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

/** The first pause is a second; each failure doubles it, up to a minute. */
export function createBackoff(): Backoff {
  let nextMs = FIRST_MS;
  return {
    failed() {
      const pauseMs = nextMs;
      nextMs = Math.min(LONGEST_MS, nextMs * 2);
      return pauseMs;
    },
    succeeded() {
      nextMs = FIRST_MS;
    },
  };
}
