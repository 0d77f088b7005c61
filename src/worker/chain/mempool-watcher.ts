// The mempool half of a watcher's pass: new transactions are read and recorded; those that left are gone, replaced or mined. A node with
// ZMQ pushes transactions as they come; the whole list is compared as often as that is cheap.

import type { ChainPort, TransactionFacts } from '../../core/ports.ts';
import { type ChainCursor, holdCursor } from '../../store/chain/blocks.ts';
import type { Sighting } from '../../store/chain/payment-facts.ts';
import {
  compareWithMempool,
  type MempoolChanges,
  recordMempoolChanges,
  recordSightings,
  wakeJudge,
} from '../../store/chain/sightings.ts';
import { type Listing, readUnmined } from '../../store/chain/unmined.ts';
import { transactionByIndex } from '../../store/postgres/connect.ts';
import type { ChainContext } from './context.ts';
import { createMempoolListings } from './mempool-listings.ts';
import { createMempoolMemory } from './mempool-memory.ts';
import { createMempoolReader, difference, type MempoolReading, type Reading, readOf } from './mempool-reader.ts';
import { isTip } from './reorganisation.ts';
import type { ChainWatchList } from './watch-list.ts';

export type MempoolWatcher = {
  /** Accepts pushed raw transactions; calls `onHit` when one touches something of ours that is not recorded yet. */
  take(raws: readonly Uint8Array[]): void;
  /** What of the last list could not be read, and why. */
  alarms(): readonly string[];
  /** Something was lost, or the chain changed: the next look compares the whole list. */
  lookAtAll(): void;
  /** The next look requests a list, however recent the last one is. */
  listNext(): void;
  /** Whether the next look needs a list that is short enough to come with the node's condition. */
  wantsShortList(): boolean;
  /** Reads and records the mempool of a node whose tip was `cursor`. */
  look(cursor: ChainCursor, how: LookOptions): Promise<Looked>;
  /**
   * Records what pays us in the mempool of a node that has fewer blocks than `cursor`; what is missing in such a mempool proves nothing.
   * @returns whether there is more to read at once
   */
  lookBehind(cursor: ChainCursor): Promise<boolean>;
  /** The newest number of the database when this transaction was first read in a mempool; null when it was not. */
  firstSeen(txid: string): number | null;
};
export type LookOptions = {
  /** When the pass began. */
  readonly atMs: number;
  /** What the node listed in this pass before it reported `cursor` as its tip; null = it was not asked. */
  readonly listed: readonly string[] | null;
};
export type Looked = {
  /**
   * `complete`: everything that the node held when the look began has been recorded. `more`: it was too much for one look, so continue at
   * once.
   */
  readonly state: 'complete' | 'incomplete' | 'more';
  /** Something was written. */
  readonly wrote: boolean;
};

const MOST_PUSHES = 5_000;
const SHORT_LIST = 2_000;
const GONE_COMPARED_MS = 4 * 86_400_000;
/** Everything is compared again after this time, not only what changed in the list: others may have written payments. */
const COMPARED_AGAIN_MS = 60_000;

/** `isPushed`: the node announces transactions (ZMQ), so that whole lists may be rare; `onHit`: a pushed one touches something of ours. */
export function createMempoolWatcher(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: { readonly isPushed: () => boolean; readonly onHit: () => void; readonly reading?: MempoolReading | undefined },
): MempoolWatcher {
  const { currency } = port;
  const reader = createMempoolReader(port, watch, options.reading);
  /** Txids of the last list whose transactions were read, and recorded where they touch something of ours. */
  let seen = createMempoolMemory();
  /** The same for a node with fewer blocks than we have read; once it has them all it is looked at in full. */
  let seenBehind: ReadonlySet<string> = new Set();
  let pushed: Uint8Array[] = [];
  let hits = new Map<string, TransactionFacts>();
  let scanning = false;
  const listings = createMempoolListings();
  /** Something was recorded since `seen` was listed: what is in it may have been replaced, and come back. */
  let wroteSince = false;
  /** The list that was last compared with what is recorded, and when everything was; null = something else has changed since. */
  let compared: Compared | null = null;
  /** The last pass in which everything pushed was recorded: the watcher counts as caught up to there for the next push. */
  let pushedUpToMs = 0;
  let generation = ctx.db.identity.generation;

  /** What was recorded in a database that was replaced must be recorded again, and its numbers say nothing about the new one's. */
  function forgetIfReplaced(): void {
    if (generation === ctx.db.identity.generation) return;
    generation = ctx.db.identity.generation;
    seen = createMempoolMemory();
    seenBehind = new Set();
    hits = new Map();
    pushedUpToMs = 0;
    lookAtAll();
  }
  function lookAtAll(): void {
    listings.ask();
    compared = null;
  }

  /** A node announces the transactions of a new block once more: the block brings them. */
  function isRecorded(txid: string): boolean {
    forgetIfReplaced();
    return !wroteSince && seen.has(txid);
  }

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
          if (facts !== null && !isRecorded(facts.txid)) hits.set(facts.txid, facts);
        }
        if (hits.size > 0) options.onHit();
      }
    } catch {
      listings.ask(); // the whole list shows what is wrong, and nothing is lost
    } finally {
      scanning = false;
    }
  }

  async function sightings(
    facts: Iterable<TransactionFacts>,
    { pushed, isBehind = false }: { readonly pushed: ReadonlyMap<string, unknown>; readonly isBehind?: boolean },
    nowMs: number,
  ): Promise<Sighting[]> {
    const all = [...facts];
    const paying = all.filter((one) => one.outputs.length > 0);
    const entries = await port.mempoolEntries(paying.map((one) => one.txid));
    return all.map((one) => {
      const entry = entries.get(one.txid) ?? null;
      const seenAtMs = Math.min(entry?.atMs ?? nowMs, nowMs);
      // once the whole list was read, what is new in it has just come, whatever clocks say
      const entered = isBehind || seen.isWhole ? null : entry;
      const sighting = { facts: one, seenAtMs, seenOrder: seen.firstSeen(one.txid), entered };
      return pushed.has(one.txid) ? { ...sighting, caughtUpAtMs: pushedUpToMs } : sighting;
    });
  }

  /**
   * Pushed transactions that the node still has: one that a push announced may have been replaced since, or be only in a block. Null = the
   * node does not confirm one of them, so only the whole list can tell.
   */
  async function pushedSightings(facts: Iterable<TransactionFacts>, nowMs: number): Promise<Sighting[] | null> {
    const all: Sighting[] = [];
    const pushedNow = [...facts];
    const entries = await port.mempoolEntries(pushedNow.map((one) => one.txid));
    for (const one of pushedNow) {
      const entry = entries.get(one.txid);
      if (entry === undefined) return null;
      const seenAtMs = Math.min(entry.atMs, nowMs);
      all.push({ facts: one, seenAtMs, caughtUpAtMs: pushedUpToMs, seenOrder: seen.firstSeen(one.txid) });
    }
    return all;
  }

  async function record(
    cursor: ChainCursor,
    atMs: number,
    seenNow: readonly Sighting[],
    listing: Listing | null,
  ): Promise<boolean> {
    const sinceMs = atMs - GONE_COMPARED_MS;
    if (seenNow.length === 0) {
      if (listing === null) return false;
      const unmined = await readUnmined(ctx.db, currency, sinceMs, listing);
      if (isNothing(compareWithMempool(unmined, listing.txids, atMs))) return false;
    }
    await transactionByIndex(ctx.db, async (sql) => {
      await holdCursor(sql, currency, cursor);
      let changed = await recordSightings(sql, currency, { block: null, caughtUpAtMs: cursor.caughtUpAtMs, atMs }, seenNow);
      if (listing !== null) {
        const unmined = await readUnmined(sql, currency, sinceMs, listing);
        const changes = compareWithMempool(unmined, listing.txids, atMs, cursor.height);
        await recordMempoolChanges(sql, currency, changes);
        changed += changes.changed.length;
      }
      if (changed > 0) await wakeJudge(sql, currency);
    });
    return true;
  }

  /** It is the same list as compared last, and nothing of ours has changed in between. */
  function isAsCompared({ listing, read, missing }: Reading, seenNow: readonly Sighting[]): boolean {
    const isSame = listing.size === seen.size && read.size === 0 && missing.length === 0 && seenNow.length === 0;
    return isSame && isRecent(compared);
  }

  return {
    alarms: reader.alarms,
    take(raws) {
      if (pushed.length + raws.length > MOST_PUSHES) {
        pushed = [];
        listings.ask();
      }
      pushed = [...pushed, ...raws];
      void scanPushes();
    },
    lookAtAll,
    firstSeen(txid) {
      forgetIfReplaced();
      return seen.firstSeen(txid);
    },
    listNext: listings.ask,
    wantsShortList() {
      forgetIfReplaced();
      return seen.size <= SHORT_LIST && (!options.isPushed() || listings.isDue());
    },
    async lookBehind(cursor) {
      forgetIfReplaced();
      const check = ctx.db.identity.look();
      const nowMs = ctx.ports.clock.now();
      const reading = await reader.read(new Set(await port.mempool()), seenBehind);
      // a peg-out in such a node's mempool may be the one that we have read in a block: only a node that has that block can distinguish
      // them
      const paying = reading.touched
        .map((one) => ({ ...one, outputs: one.outputs.filter((output) => output.pegOut === undefined) }))
        .filter((one) => one.outputs.length > 0);
      await record(cursor, nowMs, await sightings(paying, { pushed: new Map(), isBehind: true }, nowMs), null);
      check();
      seenBehind = readOf(reading, seenBehind);
      lookAtAll();
      return reading.more;
    },
    async look(cursor, { atMs, listed }) {
      forgetIfReplaced();
      const check = ctx.db.identity.look();
      const beganMs = performance.now();
      const wanted = new Map([...hits].filter(([txid]) => !isRecorded(txid)));
      hits = new Map();
      const isPushed = options.isPushed();
      if (isPushed && !listings.isDue()) {
        const pushedNow = await pushedSightings(wanted.values(), ctx.ports.clock.now());
        if (pushedNow !== null) {
          const wrote = await record(cursor, atMs, pushedNow, null);
          check();
          pushedUpToMs = atMs;
          if (wrote) {
            compared = null;
            wroteSince = true;
          }
          return { state: 'incomplete', wrote };
        }
      }
      const listingEnds = listings.begin();
      // what was pushed after the node gave that list is in a newer one only
      const isOlder = [...wanted.keys()].some((txid) => listed?.includes(txid) === false);
      const reading = await reader.readAll(isOlder ? null : listed, seen);
      const { listing, more } = reading;
      const isAtTip = reading.isGiven || (await isTip(port, cursor));
      const facts = new Map(reading.touched.map((one) => [one.txid, one]));
      for (const [txid, one] of wanted) if (listing.has(txid)) facts.set(txid, one);
      const seenNow = await sightings(facts.values(), { pushed: wanted }, ctx.ports.clock.now());
      let wrote = false;
      if (!isAtTip || !isAsCompared(reading, seenNow)) {
        const before = isRecent(compared) ? compared : null;
        compared = null;
        // what is recorded now may have left before the list came
        const recorded = seenNow.map((one) => one.facts.txid);
        const changed = before === null ? null : [...difference(before.listing, listing), ...recorded];
        wrote = await record(cursor, atMs, seenNow, isAtTip && !more ? { txids: listing, changed } : null);
        check();
        seen.listed(readOf(reading, seen), watch.order, isAtTip && !more && reading.missing.length === 0);
        wroteSince = !isAtTip || more;
        if (more) return { state: 'more', wrote };
        if (!isAtTip || reading.missing.length > 0) return { state: 'incomplete', wrote };
        compared = { listing, allMs: before?.allMs ?? beganMs };
      }
      if (isPushed) pushedUpToMs = atMs;
      if (!listingEnds()) compared = null;
      return { state: 'complete', wrote };
    },
  };
}

type Compared = { readonly listing: ReadonlySet<string>; readonly allMs: number };

function isRecent(compared: Compared | null): compared is Compared {
  return compared !== null && performance.now() - compared.allMs < COMPARED_AGAIN_MS;
}

function isNothing(changes: MempoolChanges): boolean {
  return changes.changed.length === 0 && changes.departed.length === 0;
}
