// Token buckets (behaviour §1): one per caller and kind of call, on the service's clock, never delaying, in bounded memory. Where there are
// several servers the database counts (shared-limits.ts), and a bucket here is what this server knows of it.
import type { CallLimit } from '../contract/endpoint.ts';
import type { RefusalLimit } from '../core/refusal.ts';
import { type Bucket, NOT_SHARED, type SharedLimit, type SharedLimits } from './shared-limits.ts';

/** Where headers are written. */
export type Headers = { header(name: string, value: string): unknown };
export type Limiter<Key> = {
  /** Takes one call if there is one left; a promise only where several servers count together. It never rejects. */
  take(key: Key, nowMs: number): boolean | Promise<boolean>;
  /** Writes RateLimit-Policy, RateLimit and X-RateLimit-* as they are for this caller (IETF draft-ietf-httpapi-ratelimit-headers-10). */
  describe(reply: Headers, key: Key, nowMs: number): void;
  /** Whole seconds until the next call is possible, at least 1. */
  retryAfterSeconds(key: Key, nowMs: number): number;
};

const MINUTE_MS = 60_000;
const MAX_KEPT = 100_000;

/**
 * @param name of the policy in the headers
 * @param scale multiplies every number (BURSAR_RATE_LIMIT_SCALE)
 * @param keyOf the key of a text, where keys are no strings
 */
export function createLimiter<Key extends string | bigint>(
  name: string,
  limit: CallLimit,
  scale: number,
  sharedLimits: SharedLimits = NOT_SHARED,
  keyOf: (text: string) => Key = (text) => text as Key,
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
  function lower(key: Key, known: Readonly<Bucket>): void {
    const atMs = Math.max(known.atMs, buckets.get(key)?.atMs ?? known.atMs);
    const bucket = filled(key, atMs);
    bucket.tokens = Math.min(bucket.tokens, known.tokens + (atMs - known.atMs) * perMs);
  }
  const shared: SharedLimit = { name, capacity, perMs, buckets, lower: (text, known) => lower(keyOf(text), known) };
  sharedLimits.share(shared);

  async function takeTogether(key: Key, nowMs: number): Promise<boolean> {
    try {
      const taken = await sharedLimits.take(shared, String(key), nowMs);
      if (taken === null) return true;
      lower(key, taken);
      return taken.granted;
    } catch {
      return true; // the database does not answer: this server's own count decides
    }
  }
  return {
    take(key, nowMs) {
      const bucket = filled(key, nowMs);
      // other servers only take more: a bucket that is empty here is empty
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      return sharedLimits.alone || takeTogether(key, nowMs);
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

/** The headers of a used-up limit, for a caller who was refused by a limit that is no bucket. */
export function describeUsedUp(reply: Headers, limit: RefusalLimit, secondsLeft: number): void {
  const { name, calls, seconds } = limit;
  reply.header('ratelimit-policy', `"${name}";q=${calls};w=${seconds}`);
  reply.header('ratelimit', `"${name}";r=0;t=${secondsLeft}`);
  reply.header('x-ratelimit-limit', String(calls));
  reply.header('x-ratelimit-remaining', '0');
  reply.header('x-ratelimit-reset', String(secondsLeft));
}

/** Makes room in a full map: drops all that are `done`, and if they are few, the oldest, until a tenth is free. */
function makeRoom<Value>(kept: Map<unknown, Value>, done: (value: Value) => boolean): void {
  if (kept.size < MAX_KEPT) return;
  for (const [key, value] of kept) if (done(value)) kept.delete(key);
  for (const key of kept.keys()) {
    if (kept.size <= MAX_KEPT * 0.9) return;
    kept.delete(key);
  }
}

/** A number of a limit, multiplied; at least 1. */
export function scaled(count: number, scale: number): number {
  return Math.max(1, Math.floor(count * scale));
}
