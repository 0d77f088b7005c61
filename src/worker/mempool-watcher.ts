// The mempool half of a watcher's pass: what entered is read and recorded, what left is gone, replaced or mined. A node with ZMQ pushes
// transactions as they come; the whole list is compared as often as it is cheap. Used by chain-watcher.ts only.
import type { ChainPort, TransactionFacts } from '../core/ports.ts';
import { type ChainCursor, holdCursor } from '../store/blocks.ts';
import {
  compareWithMempool,
  type MempoolChanges,
  readUnmined,
  recordMempoolChanges,
  recordSightings,
  wakeJudge,
} from '../store/chain-facts.ts';
import type { Sighting } from '../store/payment-facts.ts';
import type { ChainContext } from './chain-context.ts';
import type { ChainWatchList } from './watch-list.ts';

export type MempoolWatcher = {
  /** Takes a pushed raw transaction; true through `onHit` when it touches something of ours. */
  take(raw: Uint8Array): void;
  /** Something was lost, or the chain changed: the next look compares the whole list. */
  lookAtAll(): void;
  /** Reads and records the mempool of a node whose tip was `cursor`. True when everything that it held then has been recorded. */
  look(cursor: ChainCursor, atMs: number): Promise<boolean>;
  /** Records what pays us in the mempool of a node that has fewer blocks than `cursor`; what such a node does not list says nothing. */
  lookBehind(cursor: ChainCursor): Promise<void>;
};

const READ_AT_ONCE = 2_000;
const MOST_PUSHES = 5_000;
/** Of its time a watcher spends at most this share on whole lists, as long as pushes tell what is new. */
const LISTING_SHARE = 20;
const LONGEST_PAUSE_MS = 10_000;
const GONE_COMPARED_MS = 4 * 86_400_000;

export function createMempoolWatcher(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: { readonly isPushed: () => boolean; readonly onHit: () => void },
): MempoolWatcher {
  const { currency } = port;
  /** Txids of the last compared list that were read: one that the node did not have is asked for again as long as it is listed. */
  let seen: ReadonlySet<string> = new Set();
  /** Txids that were read in the last list of a node with fewer blocks than we have read; it is looked at wholly when it has them all. */
  let seenBehind: ReadonlySet<string> = new Set();
  let pushed: Uint8Array[] = [];
  let hits = new Map<string, TransactionFacts>();
  let scanning = false;
  let nextListingMs = 0;
  /** The last pass in which all that had been pushed was recorded: so far the watcher had caught up when the next one is pushed. */
  let pushedUpToMs = 0;

  async function scanPushes(): Promise<void> {
    if (scanning) return;
    scanning = true;
    try {
      while (pushed.length > 0) {
        const batch = pushed;
        pushed = [];
        await watch.fresh();
        for (const raw of batch) {
          const facts = port.readRaw(raw, watch);
          if (facts !== null) hits.set(facts.txid, facts);
        }
        if (hits.size > 0) options.onHit();
      }
    } catch {
      nextListingMs = 0; // the whole list tells what is wrong, and nothing is lost
    } finally {
      scanning = false;
    }
  }

  async function readNew(
    listing: ReadonlySet<string>,
    known = seen,
  ): Promise<{ touched: TransactionFacts[]; missing: string[] }> {
    const unread = [...listing].filter((txid) => !known.has(txid));
    const touched: TransactionFacts[] = [];
    const missing: string[] = [];
    for (let from = 0; from < unread.length; from += READ_AT_ONCE) {
      const part = await port.readMempoolTransactions(unread.slice(from, from + READ_AT_ONCE), watch);
      touched.push(...part.touched);
      missing.push(...part.missing);
    }
    return { touched, missing };
  }

  async function sightings(
    facts: Iterable<TransactionFacts>,
    pushed: ReadonlyMap<string, unknown>,
    nowMs: number,
  ): Promise<Sighting[]> {
    const all: Sighting[] = [];
    for (const one of facts) {
      const nodeSawMs = one.outputs.length > 0 ? await port.mempoolSeenAtMs(one.txid) : null;
      const seenAtMs = Math.min(nodeSawMs ?? nowMs, nowMs);
      all.push(pushed.has(one.txid) ? { facts: one, seenAtMs, caughtUpAtMs: pushedUpToMs } : { facts: one, seenAtMs });
    }
    return all;
  }

  /**
   * Pushed transactions that the node still has: what a push announced may have been replaced since, or stand in a block only. Null = of one
   * of them the node does not say that it has it, so only the whole list can tell.
   */
  async function pushedSightings(facts: Iterable<TransactionFacts>, nowMs: number): Promise<Sighting[] | null> {
    const all: Sighting[] = [];
    for (const one of facts) {
      const nodeSawMs = await port.mempoolSeenAtMs(one.txid);
      if (nodeSawMs === null) return null;
      all.push({ facts: one, seenAtMs: Math.min(nodeSawMs, nowMs), caughtUpAtMs: pushedUpToMs });
    }
    return all;
  }

  async function record(
    cursor: ChainCursor,
    atMs: number,
    seenNow: readonly Sighting[],
    listing: ReadonlySet<string> | null,
  ): Promise<void> {
    const idle =
      listing === null ||
      isNothing(compareWithMempool(await readUnmined(ctx.db, currency, atMs - GONE_COMPARED_MS), listing, atMs));
    if (seenNow.length === 0 && idle) return;
    await ctx.db.transaction(async (sql) => {
      await holdCursor(sql, currency, cursor);
      let changed = await recordSightings(sql, currency, { block: null, caughtUpAtMs: cursor.caughtUpAtMs, atMs }, seenNow);
      if (listing !== null) {
        const unmined = await readUnmined(sql, currency, atMs - GONE_COMPARED_MS);
        const changes = compareWithMempool(unmined, listing, atMs, cursor.height);
        await recordMempoolChanges(sql, currency, changes);
        changed += changes.changed.length;
      }
      if (changed > 0) await wakeJudge(sql, currency);
    });
  }

  return {
    take(raw) {
      if (pushed.length >= MOST_PUSHES) {
        pushed = [];
        nextListingMs = 0;
      }
      pushed.push(raw);
      void scanPushes();
    },
    lookAtAll() {
      nextListingMs = 0;
    },
    async lookBehind(cursor) {
      const nowMs = ctx.ports.clock.now();
      const listing = new Set(await port.mempool());
      const read = await readNew(listing, seenBehind);
      // a peg-out that such a node holds may be the one that we have read in a block: only a node that has that block can tell them apart
      const paying = read.touched
        .map((one) => ({ ...one, outputs: one.outputs.filter((output) => output.pegOut === undefined) }))
        .filter((one) => one.outputs.length > 0);
      await record(cursor, nowMs, await sightings(paying, new Map(), nowMs), null);
      seenBehind = withoutThem(listing, read.missing);
      nextListingMs = 0;
    },
    async look(cursor, atMs) {
      const beganMs = ctx.ports.clock.now();
      const wanted = hits;
      hits = new Map();
      const isPushed = options.isPushed();
      if (isPushed && beganMs < nextListingMs) {
        const pushedNow = await pushedSightings(wanted.values(), beganMs);
        if (pushedNow !== null) {
          await record(cursor, atMs, pushedNow, null);
          pushedUpToMs = atMs;
          return false;
        }
      }
      const listing = new Set(await port.mempool());
      const read = await readNew(listing);
      const isTip = (await port.hashAt(cursor.height)) === cursor.hash && (await port.hashAt(cursor.height + 1)) === null;
      const facts = new Map(read.touched.map((one) => [one.txid, one]));
      for (const [txid, one] of wanted) if (listing.has(txid)) facts.set(txid, one);
      await record(cursor, atMs, await sightings(facts.values(), wanted, ctx.ports.clock.now()), isTip ? listing : null);
      if (!isTip) return false;
      seen = withoutThem(listing, read.missing);
      if (read.missing.length > 0) return false;
      if (isPushed) pushedUpToMs = atMs;
      const endedMs = ctx.ports.clock.now();
      nextListingMs = endedMs + Math.min(LONGEST_PAUSE_MS, Math.max(0, endedMs - beganMs) * LISTING_SHARE);
      return true;
    },
  };
}

function withoutThem(listing: ReadonlySet<string>, missing: readonly string[]): ReadonlySet<string> {
  if (missing.length === 0) return listing;
  const rest = new Set(listing);
  for (const txid of missing) rest.delete(txid);
  return rest;
}

function isNothing(changes: MempoolChanges): boolean {
  return changes.changed.length === 0 && changes.departed.length === 0;
}
