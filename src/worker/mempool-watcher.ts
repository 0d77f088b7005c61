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
import { createMempoolMemory } from './mempool-memory.ts';
import type { ChainWatchList } from './watch-list.ts';

export type MempoolWatcher = {
  /** Takes a pushed raw transaction; true through `onHit` when it touches something of ours. */
  take(raw: Uint8Array): void;
  /** What of the last list could not be read, and why. */
  alarms(): readonly string[];
  /** Something was lost, or the chain changed: the next look compares the whole list. */
  lookAtAll(): void;
  /** Reads and records the mempool of a node whose tip was `cursor`. */
  look(cursor: ChainCursor, atMs: number): Promise<Looked>;
  /**
   * Records what pays us in the mempool of a node that has fewer blocks than `cursor`; what such a node does not list says nothing.
   * @returns whether there is more to read at once
   */
  lookBehind(cursor: ChainCursor): Promise<boolean>;
  /** The newest number of the database when this transaction was first read in a mempool; null when it was not. */
  firstSeen(txid: string): number | null;
};
/** `complete`: everything that the node held when the look began has been recorded. `more`: it was too much for one look, go on at once. */
export type Looked = 'complete' | 'incomplete' | 'more';

/** How much of a mempool is read in one look: a first reading of a large one takes many, and blocks and payments are recorded in between. */
export type MempoolReading = {
  /** Transactions that are asked for at once. */
  readonly atOnce: number;
  /** After so many milliseconds of a look no more are asked for. */
  readonly withinMs: number;
};
const READING: MempoolReading = { atOnce: 2_000, withinMs: 1_000 };
const MOST_PUSHES = 5_000;
const MOST_ALARMS = 5;
/** Of its time a watcher spends at most this share on whole lists, as long as pushes tell what is new. */
const LISTING_SHARE = 20;
const LONGEST_PAUSE_MS = 10_000;
const GONE_COMPARED_MS = 4 * 86_400_000;

export function createMempoolWatcher(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: { readonly isPushed: () => boolean; readonly onHit: () => void; readonly reading?: MempoolReading | undefined },
): MempoolWatcher {
  const { currency } = port;
  const { atOnce, withinMs } = options.reading ?? READING;
  /** Txids of the last list whose transactions were read, and recorded where they touch something of ours. */
  const seen = createMempoolMemory();
  /** The same of a node with fewer blocks than we have read; it is looked at wholly when it has them all. */
  let seenBehind: ReadonlySet<string> = new Set();
  let pushed: Uint8Array[] = [];
  let hits = new Map<string, TransactionFacts>();
  let scanning = false;
  let nextListingMs = 0;
  /** Why transactions of the last list cannot be read. */
  let unreadable: string[] = [];
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

  /** Reads what was not read yet, as much as one look may take. */
  async function readNew(listing: ReadonlySet<string>, known: Known): Promise<Reading> {
    const unread = [...listing].filter((txid) => !known.has(txid));
    const untilMs = performance.now() + withinMs;
    const read = new Set<string>();
    const touched: TransactionFacts[] = [];
    const missing: string[] = [];
    let from = 0;
    unreadable = [];
    do {
      const txids = unread.slice(from, from + atOnce);
      if (txids.length === 0) break;
      const part = await port.readMempoolTransactions(txids, watch);
      for (const txid of txids) read.add(txid);
      for (const txid of part.missing) read.delete(txid);
      for (const { txid } of part.unread) read.delete(txid);
      unreadable.push(...part.unread.map(({ reason }) => reason));
      touched.push(...part.touched);
      missing.push(...part.missing);
      from += atOnce;
    } while (performance.now() < untilMs);
    return { listing, read, touched, missing, more: from < unread.length };
  }

  /**
   * The same, and of what was gone when it was to be read the list again: only what the node still lists must be read for the look to be
   * complete. What came instead is read too, as far as it is there.
   */
  async function readAll(): Promise<Reading> {
    const first = await readNew(new Set(await port.mempool()), seen);
    if (first.missing.length === 0 || first.more) return first;
    const listing = new Set(await port.mempool());
    const wasAsked = new Set([...first.read, ...first.missing]);
    const second = await readNew(listing, { has: (txid) => wasAsked.has(txid) || seen.has(txid) });
    return {
      listing,
      read: new Set([...first.read, ...second.read]),
      touched: [...first.touched, ...second.touched],
      missing: first.missing.filter((txid) => listing.has(txid)),
      more: second.more,
    };
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
      const sighting = { facts: one, seenAtMs, seenOrder: seen.firstSeen(one.txid), enteredAtMs: nodeSawMs };
      all.push(pushed.has(one.txid) ? { ...sighting, caughtUpAtMs: pushedUpToMs } : sighting);
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
      const seenAtMs = Math.min(nodeSawMs, nowMs);
      const seenOrder = seen.firstSeen(one.txid);
      all.push({ facts: one, seenAtMs, caughtUpAtMs: pushedUpToMs, seenOrder, enteredAtMs: nodeSawMs });
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
    alarms: () => unreadable.slice(0, MOST_ALARMS),
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
    firstSeen: (txid) => seen.firstSeen(txid),
    async lookBehind(cursor) {
      const nowMs = ctx.ports.clock.now();
      const reading = await readNew(new Set(await port.mempool()), seenBehind);
      // a peg-out that such a node holds may be the one that we have read in a block: only a node that has that block can tell them apart
      const paying = reading.touched
        .map((one) => ({ ...one, outputs: one.outputs.filter((output) => output.pegOut === undefined) }))
        .filter((one) => one.outputs.length > 0);
      await record(cursor, nowMs, await sightings(paying, new Map(), nowMs), null);
      seenBehind = readOf(reading, seenBehind);
      nextListingMs = 0;
      return reading.more;
    },
    async look(cursor, atMs) {
      const beganMs = performance.now();
      const wanted = hits;
      hits = new Map();
      const isPushed = options.isPushed();
      if (isPushed && beganMs < nextListingMs) {
        const pushedNow = await pushedSightings(wanted.values(), ctx.ports.clock.now());
        if (pushedNow !== null) {
          await record(cursor, atMs, pushedNow, null);
          pushedUpToMs = atMs;
          return 'incomplete';
        }
      }
      const reading = await readAll();
      const { listing, more } = reading;
      const isTip = (await port.hashAt(cursor.height)) === cursor.hash && (await port.hashAt(cursor.height + 1)) === null;
      const facts = new Map(reading.touched.map((one) => [one.txid, one]));
      for (const [txid, one] of wanted) if (listing.has(txid)) facts.set(txid, one);
      const seenNow = await sightings(facts.values(), wanted, ctx.ports.clock.now());
      await record(cursor, atMs, seenNow, isTip && !more ? listing : null);
      seen.listed(readOf(reading, seen), watch.order);
      if (more) return 'more';
      if (!isTip || reading.missing.length > 0) return 'incomplete';
      if (isPushed) pushedUpToMs = atMs;
      const endedMs = performance.now();
      nextListingMs = endedMs + Math.min(LONGEST_PAUSE_MS, (endedMs - beganMs) * LISTING_SHARE);
      return 'complete';
    },
  };
}

type Known = { has(txid: string): boolean };
type Reading = {
  /** What the node lists. */
  readonly listing: ReadonlySet<string>;
  /** What of it was read now. */
  readonly read: ReadonlySet<string>;
  readonly touched: readonly TransactionFacts[];
  /** What it lists and did not have. */
  readonly missing: readonly string[];
  readonly more: boolean;
};

/** What of a list has been read, now or before. */
function readOf({ listing, read }: Reading, before: Known): ReadonlySet<string> {
  const known = new Set<string>();
  for (const txid of listing) if (read.has(txid) || before.has(txid)) known.add(txid);
  return known;
}

function isNothing(changes: MempoolChanges): boolean {
  return changes.changed.length === 0 && changes.departed.length === 0;
}
