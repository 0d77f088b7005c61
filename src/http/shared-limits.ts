// Limits hold across all servers of one database. A server that is alone counts in its memory and pays nothing for this; several servers
// count in the database. main/wiring/api-peers.ts decides which it is, and switches between the two.

/** A token bucket: what was left in it at a moment of the service's clock. */
export type Bucket = { tokens: number; atMs: number };

/** One limit, as several servers need it. */
export type SharedLimit = {
  readonly name: string;
  readonly capacity: number;
  /** Tokens that come back in a millisecond. */
  readonly perMs: number;
  /** What this server knows, by caller. */
  readonly buckets: ReadonlyMap<string | bigint, Readonly<Bucket>>;
  /** Informs this server that no more than this was left. */
  lower(key: string, bucket: Readonly<Bucket>): void;
};

export type SharedLimits = {
  /** Whether this server counts by itself. */
  readonly alone: boolean;
  /** Makes a limit shared whenever there are several servers. */
  share(limit: SharedLimit): void;
  /** Takes one call for all servers; null: this server is alone by now, and its own count decides. Fails when the database does. */
  take(limit: SharedLimit, key: string, nowMs: number): Promise<(Bucket & { readonly granted: boolean }) | null>;
};

/** A server that is always alone. */
export const NOT_SHARED: SharedLimits = { alone: true, share: () => undefined, take: async () => null };
