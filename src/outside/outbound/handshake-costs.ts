// What TLS handshakes have cost here. OpenSSL checks the signatures of a whole chain in one piece, before it looks whether somebody made the
// chain who is trusted. Which keys there may be is bounded (certificates.ts); what is within those bounds, and whatever they miss, is counted here.
import { DEAR_PART_MS } from './merchant-costs.ts';

/** A host rests so many times as long as it was computed with. */
const HOST_RESTS = 1_000;
/** And the merchant whose call it was, who may have any number of names: a twentieth of the thread is what one can take from the others. */
const MERCHANT_RESTS = 20;
const MOST_RESTING = 10_000;

/** The host rests, or the merchant: nothing more is computed. */
export class HandshakeTooDear extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_DEAR';
  constructor() {
    super('a TLS handshake with this host, or with another one of its merchant, took long to compute');
  }
}

/** His servers have taken so much here that nothing more is computed for him: he is called from elsewhere. */
export class TakenTooMuch extends Error {
  constructor() {
    super('servers of this merchant took much of what all share');
  }
}

/** One handshake with a host. */
export type Handshake = {
  /** Whether nothing more is computed for the merchant, of this connection either. */
  isOver(): boolean;
  /** Whether the host rests, or the merchant. */
  isRefused(): boolean;
  /**
   * Counts what it takes to compute with a part of it, or of what comes over its connection: both rest from the first dear one of the handshake, and
   * other handshakes that are under way end too.
   */
  compute(part: () => void): void;
  /** Does something for its connection when it is the merchant's turn, in the order in which it is given. */
  inTurn(piece: () => void): void;
  /** The connection is there: whoever is trusted may take as long as it does. */
  end(): void;
};
/** Of this thread's CPU, and a steady one. */
export type Clocks = { cpuMs(): number; nowMs(): number };
/** Who hears for whom is computed here, null for the operator, and how long that took. */
export type Watch = {
  /** Does a piece of work when it is his turn, after all that he had to be done before. */
  inTurn(merchantId: bigint | null, piece: () => void): void;
  compute(merchantId: bigint | null, part: () => void): void;
  took(merchantId: bigint | null, cpuMs: number): void;
  /** Whether nothing more is computed for him. */
  isOver(merchantId: bigint | null): boolean;
};
export const UNWATCHED: Watch = {
  inTurn: (_, piece) => piece(),
  compute: (_, part) => part(),
  took: () => undefined,
  isOver: () => false,
};

export const CLOCKS: Clocks = {
  cpuMs() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
  nowMs: () => performance.now(),
};

/**
 * Of all hosts that are connected to from here.
 * @returns begins a handshake. A merchant of null has no rest.
 */
export function handshakeCosts(
  watch: Watch = UNWATCHED,
  clocks: Clocks = CLOCKS,
): (host: string, merchantId: bigint | null) => Handshake {
  const hosts = rests<string>(HOST_RESTS, clocks.nowMs);
  const merchants = rests<bigint>(MERCHANT_RESTS, clocks.nowMs);
  let isComputing = false;
  function measured(merchantId: bigint | null, part: () => void): number {
    const before = clocks.cpuMs();
    isComputing = true;
    try {
      watch.compute(merchantId, part);
    } finally {
      isComputing = false;
    }
    return clocks.cpuMs() - before;
  }
  return (host, merchantId) => {
    const all = [hosts.of(host), ...(merchantId === null ? [] : [merchants.of(merchantId)])];
    let isOver = false;
    return {
      isOver: () => watch.isOver(merchantId),
      inTurn: (piece) => watch.inTurn(merchantId, piece),
      isRefused: () => all.some((one) => one.isResting()),
      compute(part) {
        // where a connection ends, HTTP reads what came before while TLS reads the end: that is one piece, counted once
        if (isComputing) {
          part();
          return;
        }
        const tookMs = measured(merchantId, part);
        watch.took(merchantId, tookMs);
        if (isOver || tookMs < DEAR_PART_MS) return;
        for (const one of all) one.begin(tookMs);
      },
      end() {
        isOver = true;
        for (const one of all) one.end();
      },
    };
  };
}

type Rest = { readonly untilMs: number };

/** Who rests, each for this many times as long as was computed for one handshake. */
function rests<Key>(times: number, nowMs: () => number) {
  /** Whoever was given a rest last at the end. */
  const resting = new Map<Key, readonly Rest[]>();
  const restsOf = (key: Key): readonly Rest[] => (resting.get(key) ?? []).filter(({ untilMs }) => untilMs > nowMs());
  function keep(key: Key, all: readonly Rest[]): void {
    resting.delete(key);
    if (all.length > 0) resting.set(key, all);
    if (resting.size > MOST_RESTING) resting.delete(resting.keys().next().value as Key);
  }
  return {
    /** For one handshake, which ends by itself: the rest that it began is no reason to refuse it. */
    of(key: Key) {
      let own: Rest | null = null;
      return {
        isResting: (): boolean => restsOf(key).some((one) => one !== own),
        begin(tookMs: number): void {
          own = { untilMs: nowMs() + tookMs * times };
          keep(key, [...restsOf(key), own]);
        },
        end(): void {
          if (own !== null)
            keep(
              key,
              restsOf(key).filter((one) => one !== own),
            );
        },
      };
    },
  };
}
