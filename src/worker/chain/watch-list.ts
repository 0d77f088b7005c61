// What the chains are searched for: the scripts of payable transactions (one list for all chains of a process, since a payment in another
// currency may arrive at an address) and, for each chain, the outpoints that payments spend. Scripts of the last 30 days and of unfinished
// payments are in memory; older addresses are found by the deep scan (rescan.ts), and once they were paid they are in their chain's list.
import type { CurrencyCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import type { WatchList } from '../../core/ports.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import {
  forgetForeignHorizons,
  newSpentOutpoints,
  openHorizon,
  packNewScripts,
  packOwnScripts,
  packPaidScripts,
  packScripts,
  packUnfinishedScripts,
  type SpentOutpoint,
  spentOutpoints,
} from '../../store/chain/watched.ts';
import { type ByteSet, createByteSet } from './byte-set.ts';
import type { ChainContext } from './context.ts';

const DAY_MS = 86_400_000;
/** A younger address is watched in memory, an older one is found by the deep scan. */
const WATCHED_FOR_MS = 30 * DAY_MS;
const PAGE = 20_000;
/** Payments more than this many blocks deep can only be affected by a reorganisation that first brings back their outpoints. */
const REORG_WATCH_BLOCKS = 100;

export type WatchedScripts = {
  has(bytes: Uint8Array, start: number, end: number): boolean;
  /** Each of them, the newest last; valid until the next one. */
  values(): Iterable<Uint8Array>;
  /** Loads every script that was committed until now; the first call reads all of them. */
  fresh(): Promise<void>;
  /** The newest number of the database when they were last loaded (store/chain/early-payments.ts). */
  readonly order: number;
  readonly size: number;
  readonly memoryBytes: number;
};

export type ChainWatchList = WatchList & {
  /** Watches the outpoints and the scripts of all payments above a height, and of those that are not mined. */
  watchAbove(height: number): Promise<void>;
  /** The newest number of the database when the scripts were last loaded (store/chain/early-payments.ts). */
  readonly order: number;
};

/** The scripts that a process watches, shared by its chain watchers. */
export function createWatchedScripts(ctx: ChainContext): WatchedScripts {
  let set: ByteSet = createByteSet();
  let horizon: string | null = null;
  let generation = ctx.db.identity.generation;
  let loadedAtMs = 0;
  let order = 0;

  async function load(): Promise<void> {
    const next = createByteSet();
    const nowMs = ctx.ports.clock.now();
    if (horizon === null) await forgetForeignHorizons(ctx.db);
    const from = await openHorizon(ctx.db);
    const sinceMs = nowMs - WATCHED_FOR_MS;
    addPack(next, await packUnfinishedScripts(ctx.db, sinceMs));
    addPack(next, await packOwnScripts(ctx.db));
    for (let afterId = sortableId('txn_', sinceMs, new Uint8Array(10)); ; ) {
      const page = await packScripts(ctx.db, { afterId, sinceMs, limit: PAGE });
      if (page.lastId === null) break;
      addPack(next, page.pack);
      afterId = page.lastId;
    }
    set = next;
    horizon = from;
    loadedAtMs = nowMs;
  }
  const fresh = oneAtATime(async () => {
    const check = ctx.db.identity.look();
    // the new database counts its transactions anew: an old horizon may lie in its future
    if (generation !== ctx.db.identity.generation) horizon = null;
    generation = ctx.db.identity.generation;
    if (horizon === null || ctx.ports.clock.now() - loadedAtMs > DAY_MS) await load();
    const news = await packNewScripts(ctx.db, horizon as string);
    check({
      same: { 'the table of transactions': news.relation },
      rising: { 'the oldest open transaction': BigInt(news.horizon), 'the newest number': BigInt(news.order) },
    });
    addPack(set, news.pack);
    horizon = news.horizon;
    order = news.order;
  });
  return {
    has: (bytes, start, end) => set.has(bytes, start, end),
    values: () => set.values(),
    fresh,
    get order() {
      return order;
    },
    get size() {
      return set.size;
    },
    get memoryBytes() {
      return set.memoryBytes;
    },
  };
}

/** The watch list of one chain. */
export function createWatchList(ctx: ChainContext, currency: CurrencyCode, scripts: WatchedScripts): ChainWatchList {
  const outpoints = createByteSet();
  /** Scripts of payments of this chain: a second payment to one of them is seen, whatever the age of its address. */
  const paid = createByteSet();
  let horizon: string | null = null;
  let generation = ctx.db.identity.generation;

  function add(list: readonly SpentOutpoint[]): void {
    for (const outpoint of list) outpoints.add(outpointKey(outpoint), 0, 36);
  }
  async function watchAbove(height: number): Promise<void> {
    add(await spentOutpoints(ctx.db, currency, height));
    addPack(paid, await packPaidScripts(ctx.db, currency, height));
  }
  const freshOutpoints = oneAtATime(async () => {
    const check = ctx.db.identity.look();
    if (generation !== ctx.db.identity.generation) horizon = null;
    generation = ctx.db.identity.generation;
    if (horizon === null) {
      const from = await openHorizon(ctx.db);
      await watchAbove(await recentHeight());
      horizon = from;
    }
    const news = await newSpentOutpoints(ctx.db, currency, horizon);
    check({ rising: { 'the oldest open transaction': BigInt(news.horizon) } });
    add(news.outpoints);
    addPack(paid, news.pack);
    horizon = news.horizon;
  });
  async function recentHeight(): Promise<number> {
    return ((await readCursor(ctx.db, currency))?.height ?? 0) - REORG_WATCH_BLOCKS;
  }
  return {
    hasScript: (bytes, start, end) => scripts.has(bytes, start, end) || paid.has(bytes, start, end),
    hasOutpoint: (bytes, start) => outpoints.has(bytes, start, start + 36),
    *scripts() {
      yield* paid.values();
      yield* scripts.values();
    },
    async fresh() {
      await Promise.all([scripts.fresh(), freshOutpoints()]);
    },
    watchAbove,
    get order() {
      return scripts.order;
    },
  };
}

/** Outpoints to look for. */
export function createOutpointSet(list: readonly SpentOutpoint[]): Pick<WatchList, 'hasOutpoint'> {
  const set = createByteSet();
  for (const outpoint of list) set.add(outpointKey(outpoint), 0, 36);
  return { hasOutpoint: (bytes, start) => set.has(bytes, start, start + 36) };
}

function outpointKey({ txid, vout }: SpentOutpoint): Buffer {
  const key = Buffer.alloc(36);
  Buffer.from(txid, 'hex').reverse().copy(key);
  key.writeUInt32LE(vout, 32);
  return key;
}

/** Every output and every input: for one transaction or one block. */
export const EVERYTHING: WatchList = { hasScript: () => true, hasOutpoint: () => true, fresh: async () => undefined };

/** A watch list of only these scripts. */
export function watchOnly(scripts: readonly Uint8Array[]): WatchList {
  const set = createByteSet();
  for (const script of scripts) set.add(script, 0, script.length);
  return {
    hasScript: (bytes, start, end) => set.has(bytes, start, end),
    hasOutpoint: () => false,
    scripts: () => scripts,
    fresh: async () => undefined,
  };
}

function addPack(set: ByteSet, pack: Buffer | null): void {
  if (pack === null) return;
  for (let at = 0; at < pack.length; ) {
    const end = at + 1 + (pack[at] as number);
    set.add(pack, at + 1, end);
    at = end;
  }
}

/**
 * Runs one at a time, and makes every caller wait for a run that began after its call, which therefore includes everything committed before
 * the call. Callers that wait together share a run.
 */
function oneAtATime(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let waiting: Promise<void> | null = null;
  function begin(): Promise<void> {
    waiting = null;
    const mine = run().finally(() => {
      if (running === mine) running = null;
    });
    running = mine;
    return mine;
  }
  return () => {
    if (running === null) return begin();
    waiting ??= running.catch(() => undefined).then(begin);
    return waiting;
  };
}
