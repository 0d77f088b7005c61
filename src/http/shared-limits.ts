// Limits hold across all servers of one database. A server that is alone counts in its memory and pays nothing for this; several count in the
// database. Which it is, and the passage from one to the other, is main/api-peers.ts.

/** A token bucket: what was left in it at a moment of the service's clock. */
export type Bucket = { tokens: number; atMs: number };

/** One limit, as what several servers need of it. */
export type SharedLimit = {
  readonly name: string;
  readonly capacity: number;
  /** Tokens that come back in a millisecond. */
  readonly perMs: number;
  /** What this server knows, by caller. */
  readonly buckets: ReadonlyMap<string | bigint, Readonly<Bucket>>;
  /** Makes this server know that no more than so much was left. */
  lower(key: string, bucket: Readonly<Bucket>): void;
};

export type SharedLimits = {
  /** Whether this server counts by itself. */
  readonly alone: boolean;
  /** Has a limit counted together whenever there are several servers. */
  share(limit: SharedLimit): void;
  /** Takes one call for all servers; null: this server is alone by now, and its own count is the one. Fails when the database does. */
  take(limit: SharedLimit, key: string, nowMs: number): Promise<(Bucket & { readonly granted: boolean }) | null>;
};

/** A server that is always alone. */
export const NOT_SHARED: SharedLimits = { alone: true, share: () => undefined, take: async () => null };
