// Reads the transactions of a mempool that were not read yet, in parts, from a node whose mempool does not hold still. Used by mempool-watcher.ts.
import type { ChainPort, TransactionFacts, WatchList } from '../core/ports.ts';

/** How much of a mempool is read in one look: a first reading of a large one takes many, and blocks and payments are recorded in between. */
export type MempoolReading = {
  /** Transactions that are asked for at once. */
  readonly atOnce: number;
  /** After so many milliseconds of a look no more are asked for. */
  readonly withinMs: number;
};
const READING: MempoolReading = { atOnce: 2_000, withinMs: 1_000 };
const MOST_ALARMS = 5;

export type Known = { has(txid: string): boolean };
export type Reading = {
  /** What the node lists. */
  readonly listing: ReadonlySet<string>;
  /** It is the list that was given, not one that was asked for later. */
  readonly isGiven: boolean;
  /** What of it was read now. */
  readonly read: ReadonlySet<string>;
  readonly touched: readonly TransactionFacts[];
  /** What it lists and did not have. */
  readonly missing: readonly string[];
  readonly more: boolean;
};

/** What of a list has been read, now or before. */
export function readOf({ listing, read }: Reading, before: Known): ReadonlySet<string> {
  const known = new Set<string>();
  for (const txid of listing) if (read.has(txid) || before.has(txid)) known.add(txid);
  return known;
}

export type MempoolReader = {
  /** What of the last list could not be read, and why. */
  alarms(): readonly string[];
  /** Reads what was not read yet of a list, as much as one look may take. */
  read(listing: ReadonlySet<string>, known: Known): Promise<Reading>;
  /**
   * The same with the node's own list, and of what was gone when it was to be read the list again: only what the node still lists must be
   * read for the look to be complete. What came instead is read too, as far as it is there.
   * @param listed the node's list, where it is known already
   */
  readAll(listed: readonly string[] | null, seen: Known): Promise<Reading>;
};

export function createMempoolReader(port: ChainPort, watch: WatchList, reading: MempoolReading = READING): MempoolReader {
  const { atOnce, withinMs } = reading;
  /** Why transactions of the last list cannot be read. */
  let unreadable: string[] = [];

  /** Reads what was not read yet, as much as one look may take. */
  async function read(listing: ReadonlySet<string>, known: Known): Promise<Reading> {
    const unread = [...listing].filter((txid) => !known.has(txid));
    const untilMs = performance.now() + withinMs;
    const done = new Set<string>();
    const touched: TransactionFacts[] = [];
    const missing: string[] = [];
    let from = 0;
    unreadable = [];
    do {
      const txids = unread.slice(from, from + atOnce);
      if (txids.length === 0) break;
      const part = await port.readMempoolTransactions(txids, watch);
      for (const txid of txids) done.add(txid);
      for (const txid of part.missing) done.delete(txid);
      for (const { txid } of part.unread) done.delete(txid);
      unreadable.push(...part.unread.map(({ reason }) => reason));
      touched.push(...part.touched);
      missing.push(...part.missing);
      from += atOnce;
    } while (performance.now() < untilMs);
    return { listing, isGiven: false, read: done, touched, missing, more: from < unread.length };
  }

  /**
   * The same, and of what was gone when it was to be read the list again: only what the node still lists must be read for the look to be
   * complete. What came instead is read too, as far as it is there.
   */
  async function readAll(listed: readonly string[] | null, seen: Known): Promise<Reading> {
    const first = await read(new Set(listed ?? (await port.mempool())), seen);
    if (first.missing.length === 0 || first.more) return { ...first, isGiven: listed !== null };
    const listing = new Set(await port.mempool());
    const wasAsked = new Set([...first.read, ...first.missing]);
    const second = await read(listing, { has: (txid) => wasAsked.has(txid) || seen.has(txid) });
    return {
      listing,
      isGiven: false,
      read: new Set([...first.read, ...second.read]),
      touched: [...first.touched, ...second.touched],
      missing: first.missing.filter((txid) => listing.has(txid)),
      more: second.more,
    };
  }

  return { alarms: () => unreadable.slice(0, MOST_ALARMS), read, readAll };
}
