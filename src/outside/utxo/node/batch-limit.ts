// How many calls a node takes in one request. Providers take only some, or none together, and each says so in words of its own.

/** Contracts say whatever strangers want: what reverts is no refusal of a request. */
const OF_BATCHES = /^(?!.*revert).*\bbatch/is;
/** One refusal says nothing for good. */
const NARROW_MS = 600_000;

export type BatchLimit = {
  /** How many calls one request may have, by what was refused in the last ten minutes. */
  most(): number;
  /** Whether this is the refusal of a request for how many calls it has, as parsed: then it may have half of them from now on, and one at the least. */
  narrowedBy(answer: unknown, calls: number): boolean;
};

/** A limit of which nothing is known yet. */
export function createBatchLimit(): BatchLimit {
  let mostCalls = Number.POSITIVE_INFINITY;
  let untilMs = 0;
  return {
    most() {
      if (performance.now() > untilMs) mostCalls = Number.POSITIVE_INFINITY;
      return mostCalls;
    },
    narrowedBy(answer, calls) {
      if (!isRefusal(answer)) return false;
      // requests that are refused at the same time narrow it once
      mostCalls = Math.max(1, Math.min(mostCalls, calls >> 1));
      untilMs = performance.now() + NARROW_MS;
      return true;
    },
  };
}

/** One refusal, also in a list (geth names the first call only), or one for each call. */
function isRefusal(answer: unknown): boolean {
  if (Array.isArray(answer)) return answer.length > 0 && answer.every((one) => !Array.isArray(one) && isRefusal(one));
  const message = (answer as { readonly error?: { readonly message?: unknown } | null } | null)?.error?.message;
  return typeof message === 'string' && OF_BATCHES.test(message);
}
