// How the API servers of one database count together. A server that holds the lock of the servers alone counts in its memory. A new server
// takes a share of that lock before it serves; the one that was alone grants it once its counts are in the database, where all count from
// then on. The last server left takes them out again. The lock belongs to a session, so it also shows when a server has died.
import { randomBytes } from 'node:crypto';
import type { SharedLimit, SharedLimits } from '../../http/shared-limits.ts';
import {
  API_PEERS_CHANNEL,
  type Asking,
  announceApiPeer,
  type BucketRow,
  drainCounts,
  mergeCounts,
  pruneCounts,
  takeCalls,
} from '../../store/merchants/call-counts.ts';
import { createBatch } from '../../store/postgres/batch.ts';
import type { Database } from '../../store/postgres/connect.ts';

const LOOK_EVERY_MS = 1_000;
/** How long to wait for a server that is alone and does not answer (it is frozen, and serves nobody). */
const GRANTED_WITHIN_MS = 10_000;
const PRUNE_EVERY_MS = 60_000;

export type ApiPeers = {
  readonly sharedLimits: SharedLimits;
  /** Joins the servers; await it before the first call is served, and after all limits are shared. */
  join(): Promise<void>;
  /** Call it when no call is served any more. */
  leave(): Promise<void>;
};

/** @param now the service's clock */
export function openApiPeers(db: Database, now: () => number, onTrouble: (error: unknown) => void): ApiPeers {
  const self = randomBytes(9).toString('base64url');
  const limits = new Map<string, SharedLimit>();
  const underWay = new Set<Promise<unknown>>();
  const ask = createBatch(2, (askings: readonly Asking[]) => takeCalls(db, askings));
  const lock = db.sessionLock('api servers', giveUp);
  let alone = false;
  let turning: Promise<void> | null = null;
  let closed = false;
  let prunedAtMs = performance.now();

  /** Switches from one way of counting to the other; calls wait meanwhile. */
  function turn(work: () => Promise<void>): Promise<void> {
    const mine = Promise.resolve(turning).then(work).catch(onTrouble);
    turning = mine;
    return mine.then(() => {
      if (turning === mine) turning = null;
    });
  }

  /** Another server has joined, or the session whose lock shows that we are alone is gone. */
  function giveUp(): void {
    if (!alone) return;
    alone = false;
    void turn(async () => {
      try {
        await mergeCounts(db, known(limits, now()));
      } finally {
        await lock.yield();
      }
    });
  }

  async function becomeAlone(): Promise<void> {
    await turn(async () => {
      await Promise.allSettled(underWay);
      try {
        for (const { bucket, tokens, atMs } of await drainCounts(db)) {
          const space = bucket.indexOf(' ');
          limits.get(bucket.slice(0, space))?.lower(bucket.slice(space + 1), { tokens, atMs });
        }
        alone = true;
      } catch (error) {
        await lock.yield();
        throw error;
      }
    });
  }

  /** Whether we are one of the servers; also checks whether we are the only one. */
  async function look(): Promise<boolean> {
    if (alone) return true;
    if (!(await lock.share())) {
      await announceApiPeer(db, self);
      return false;
    }
    if (await lock.acquire()) await becomeAlone();
    else if (performance.now() - prunedAtMs > PRUNE_EVERY_MS) {
      prunedAtMs = performance.now();
      await pruneCounts(db, now());
    }
    return true;
  }

  let looking: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;
  function lookAgain(): void {
    timer = setTimeout(() => {
      looking = look()
        .catch(onTrouble)
        .finally(() => {
          if (!closed) lookAgain();
        });
    }, LOOK_EVERY_MS).unref();
  }
  let stopListening: (() => Promise<void>) | null = null;

  return {
    sharedLimits: {
      get alone() {
        return alone;
      },
      share: (limit) => void limits.set(limit.name, limit),
      async take({ name, capacity, perMs }, key, nowMs) {
        while (turning !== null) await turning;
        if (alone) return null;
        const answer = ask({ bucket: `${name} ${key}`, capacity, perMs, atMs: nowMs });
        underWay.add(answer);
        try {
          return await answer;
        } finally {
          underWay.delete(answer);
        }
      },
    },
    async join() {
      const hear = (_channel: string, from: string): void => {
        if (from !== self) giveUp();
      };
      stopListening = await db.listen([API_PEERS_CHANNEL], hear, () => undefined);
      const deadline = performance.now() + GRANTED_WITHIN_MS;
      while (!(await look()) && performance.now() < deadline) {
        await new Promise((resolve) => {
          setTimeout(resolve, 50);
        });
      }
      lookAgain();
    },
    async leave() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await looking;
      await stopListening?.();
      giveUp();
      await turning;
      await lock.release();
    },
  };
}

/** All buckets that are not full. */
function known(limits: ReadonlyMap<string, SharedLimit>, nowMs: number): BucketRow[] {
  const rows: BucketRow[] = [];
  for (const { name, capacity, perMs, buckets } of limits.values()) {
    for (const [key, { tokens, atMs }] of buckets) {
      if (tokens + Math.max(0, nowMs - atMs) * perMs < capacity) {
        rows.push({ bucket: `${name} ${key}`, capacity, perMs, tokens: Math.max(0, tokens), atMs });
      }
    }
  }
  return rows;
}
