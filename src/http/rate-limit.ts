// Token buckets (behaviour §1): one per caller and kind of call, on the service's clock, never delaying, in bounded memory. Also the count of
// failed sign-ins. Used by mount.ts, which writes the headers onto every answer.
import type { FastifyReply } from 'fastify';
import type { CallLimit } from '../contract/endpoint.ts';
import type { Neighbours } from './neighbours.ts';

export type Bucket = { tokens: number; atMs: number };
export type Limiter<Key> = {
  /** Takes one call if there is one left. The bucket is live: read it at once. */
  take(key: Key, nowMs: number): boolean;
  /** Writes RateLimit-Policy, RateLimit and X-RateLimit-* as they stand for this caller (IETF draft-ietf-httpapi-ratelimit-headers-10). */
  describe(reply: FastifyReply, key: Key, nowMs: number): void;
  /** Whole seconds until the next call is possible, at least 1. */
  retryAfterSeconds(key: Key, nowMs: number): number;
};

/** What the limits of several servers have in common. */
export type Shared<Key> = { readonly neighbours: Neighbours; readonly now: () => number; readonly keyOf: (text: string) => Key };

const MINUTE_MS = 60_000;
const MAX_KEPT = 100_000;

/**
 * @param name of the policy in the headers
 * @param scale multiplies every number (BURSAR_RATE_LIMIT_SCALE)
 * @param shared with the other servers of the same database, which count the same calls
 */
export function createLimiter<Key extends string | bigint>(
  name: string,
  limit: CallLimit,
  scale: number,
  shared: Shared<Key> | null = null,
): Limiter<Key> {
  const perMinute = scaled(limit.perMinute, scale);
  const capacity = scaled(limit.burst ?? limit.perMinute, scale);
  const perMs = perMinute / MINUTE_MS;
  const policy = `"${name}";q=${perMinute};w=60${limit.burst === undefined ? '' : `;burst=${capacity}`}`;
  const current = `"${name}";r=`;
  const limitText = String(perMinute);
  const buckets = new Map<Key, Bucket>();

  function filled(key: Key, nowMs: number): Bucket {
    const bucket = buckets.get(key);
    if (bucket === undefined) {
      makeRoom(buckets, (other) => other.tokens + (nowMs - other.atMs) * perMs >= capacity);
      const fresh = { tokens: capacity, atMs: nowMs };
      buckets.set(key, fresh);
      return fresh;
    }
    const elapsed = nowMs - bucket.atMs;
    if (elapsed !== 0) {
      if (elapsed > 0) bucket.tokens = Math.min(capacity, bucket.tokens + elapsed * perMs);
      bucket.atMs = nowMs;
    }
    return bucket;
  }
  shared?.neighbours.onCounted(name, (text, n) => {
    filled(shared.keyOf(text), shared.now()).tokens -= n;
  });
  return {
    take(key, nowMs) {
      const bucket = filled(key, nowMs);
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      shared?.neighbours.counted(name, String(key));
      return true;
    },
    describe(reply, key, nowMs) {
      const { tokens } = filled(key, nowMs);
      const remaining = String(Math.max(0, Math.floor(tokens)));
      const reset = String(Math.ceil((capacity - tokens) / perMs / 1000));
      reply.header('ratelimit-policy', policy);
      reply.header('ratelimit', `${current}${remaining};t=${reset}`);
      reply.header('x-ratelimit-limit', limitText);
      reply.header('x-ratelimit-remaining', remaining);
      reply.header('x-ratelimit-reset', reset);
    },
    retryAfterSeconds: (key, nowMs) => Math.max(1, Math.ceil((1 - filled(key, nowMs).tokens) / perMs / 1000)),
  };
}

/** Before one more is put into a full map: forgets all that are `done`, and if they are few, the oldest, until a tenth is free. */
function makeRoom<Value>(kept: Map<unknown, Value>, done: (value: Value) => boolean): void {
  if (kept.size < MAX_KEPT) return;
  for (const [key, value] of kept) if (done(value)) kept.delete(key);
  for (const key of kept.keys()) {
    if (kept.size <= MAX_KEPT * 0.9) return;
    kept.delete(key);
  }
}

function scaled(count: number, scale: number): number {
  return Math.max(1, Math.floor(count * scale));
}

export type FailureCount = {
  /** Seconds until this name may be tried again from there; 0 when it may be tried now. */
  blockedSeconds(key: string, nowMs: number): number;
  add(key: string, nowMs: number): void;
};

const FAILURES = 5;
const FAILURE_WINDOW_MS = 15 * MINUTE_MS;

/** Failed sign-ins by username and IP: from the fifth on, everything is refused until 15 minutes after the first have passed. */
export function createFailureCount(scale: number, shared: Shared<string> | null = null): FailureCount {
  const allowed = scaled(FAILURES, scale);
  const windows = new Map<string, { count: number; endsAtMs: number }>();
  function count(key: string, n: number, nowMs: number): void {
    const window = windows.get(key);
    if (window !== undefined && nowMs < window.endsAtMs) {
      window.count += n;
      return;
    }
    makeRoom(windows, ({ endsAtMs }) => nowMs >= endsAtMs);
    windows.delete(key);
    windows.set(key, { count: n, endsAtMs: nowMs + FAILURE_WINDOW_MS });
  }
  shared?.neighbours.onCounted('failed sign-ins', (key, n) => count(key, n, shared.now()));
  return {
    blockedSeconds(key, nowMs) {
      const window = windows.get(key);
      if (window === undefined || nowMs >= window.endsAtMs || window.count < allowed) return 0;
      return Math.ceil((window.endsAtMs - nowMs) / 1000);
    },
    add(key, nowMs) {
      count(key, 1, nowMs);
      shared?.neighbours.counted('failed sign-ins', key);
    },
  };
}
