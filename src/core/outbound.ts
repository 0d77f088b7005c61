// Calls to addresses that a merchant or a customer chose (a webhook's URL, an LNURL): what is asked and what comes back. outside/outbound makes
// them, and is the one place that may.

export const FAILED_HERE = 'failed_here';

/** Why there is no answer. */
export type OutboundFailure =
  /** The URL has a form that is not called (see `Outbound.problemOf`). */
  | 'url_not_allowed'
  /** Its host leads to an address that is not called: private, loopback, link-local, multicast, reserved. Nothing was connected. */
  | 'address_not_allowed'
  | 'host_not_found'
  | 'connection_failed'
  | 'tls_failed'
  /** Not answered whole within the time; what was sent may have arrived. */
  | 'timed_out'
  | 'malformed_answer'
  /** It failed here, whatever the server did: that says nothing of the server. What was sent may have arrived. */
  | typeof FAILED_HERE;

export type OutboundRequest = {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /**
   * Whose connections it uses, and leaves open for the next call: what a server says too much on one is nobody else's answer. Null = one of its
   * own, that is closed then.
   */
  readonly connectionsOf: string | null;
  /** The merchant who chose the address, whose other calls fail for a while where a server has taken much of our CPU; null = the operator. */
  readonly merchantId: bigint | null;
  /** Milliseconds from the first look at the name to the last byte that is read. */
  readonly withinMs: number;
  /** What is read of the answer's body; the rest is left, and the connection closed. */
  readonly mostBytes: number;
  readonly signal?: AbortSignal;
  /** An answer with one of these counts although its body does not come whole; without them none does. */
  readonly saysAll?: readonly Statuses[];
};

/** HTTP statuses, from the first to the last. */
export type Statuses = { readonly first: number; readonly last: number };

/** Whether a status is one of these. */
export const isOneOf = (statuses: readonly Statuses[] = [], status: number): boolean =>
  statuses.some(({ first, last }) => status >= first && status <= last);

export type OutboundResult =
  | {
      readonly kind: 'answered';
      /** Any status: redirects are not followed, and are answers like others. */
      readonly status: number;
      /** As it was sent; nothing is decompressed. */
      readonly body: Uint8Array;
      /** The body is longer than what was read of it, or did not come whole ({@link OutboundRequest.saysAll}). */
      readonly isCut: boolean;
      /** How long it asks to wait before the next call (`Retry-After`, RFC 9110 §10.2.3); absent where it does not. */
      readonly retryAfterMs?: number;
      readonly tookMs: number;
    }
  | {
      readonly kind: 'failed';
      readonly failure: OutboundFailure;
      readonly reason: string;
      readonly tookMs: number;
      /** For how much of that something of it, or of what else was asked of its server, waited for its turn here; absent = for none. */
      readonly waitedMs?: number;
      /** Nothing was sent: its time was over before its turn came. */
      readonly hasNotBegun?: boolean;
    };

export type Outbound = {
  /**
   * What is wrong with the form of a URL, as the end of a sentence ("must be …"); null when it may be called. Outside the sandbox only https
   * to a name may be, on the configured ports, without user name and password.
   */
  problemOf(url: string): string | null;
  /** The same for where its host leads now. A name that nobody answers for is no problem: it may come. Asks the DNS. */
  addressProblemOf(url: string): Promise<string | null>;
  /**
   * One call. The address that is connected to is the one that was checked, so a name cannot lead elsewhere between the two. It never throws
   * and never follows a redirect. Not for use inside a database transaction.
   */
  call(request: OutboundRequest): Promise<OutboundResult>;
  close(): Promise<void>;
};
