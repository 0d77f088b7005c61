// What TLS handshakes have cost here. OpenSSL checks the signatures of a whole chain in one piece, with keys of any kind, before it looks whether
// somebody made the chain who is trusted: 55 certificates with keys on a curve of 571 bits are 23 kB, and half a second of the loop.

/** CPU of this thread for one part that came. Four signatures on P-384 take some 5 ms, with RSA keys of 4,096 bits less than one. */
const DEAR_MS = 20;
/** A host rests so many times as long as it was computed with. */
const RESTS = 1_000;
const MOST_HOSTS = 10_000;

/** The host rests: nothing more is computed with it. */
export class HandshakeTooDear extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_DEAR';
  constructor() {
    super('a TLS handshake with this host took long to compute');
  }
}

/** One handshake with a host. */
export type Handshake = {
  /** Whether the host rests. */
  isRefused(): boolean;
  /** Counts what it takes to compute with a part of it: the host rests from the first dear one, others that are under way end too. */
  compute(part: () => void): void;
  /** The connection is there: whoever is trusted may take as long as it does. */
  end(): void;
};
type Clocks = { cpuMs(): number; nowMs(): number };

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Of all hosts that are connected to from here. */
export function handshakeCosts(clocks: Clocks = { cpuMs, nowMs: () => performance.now() }): (host: string) => Handshake {
  /** The rests of each host, the host that was given one last at the end. */
  const resting = new Map<string, readonly { readonly untilMs: number }[]>();
  const restsOf = (host: string) => (resting.get(host) ?? []).filter(({ untilMs }) => untilMs > clocks.nowMs());
  function keep(host: string, rests: readonly { readonly untilMs: number }[]): void {
    resting.delete(host);
    if (rests.length > 0) resting.set(host, rests);
    if (resting.size > MOST_HOSTS) resting.delete(resting.keys().next().value as string);
  }

  return (host) => {
    let own: { readonly untilMs: number } | null = null;
    let isOver = false;
    return {
      isRefused: () => restsOf(host).some((one) => one !== own),
      compute(part) {
        const before = clocks.cpuMs();
        part();
        const tookMs = clocks.cpuMs() - before;
        if (isOver || tookMs < DEAR_MS) return;
        own = { untilMs: clocks.nowMs() + tookMs * RESTS };
        keep(host, [...restsOf(host), own]);
      },
      end() {
        isOver = true;
        const others = restsOf(host).filter((one) => one !== own);
        if (own !== null) keep(host, others);
      },
    };
  };
}
