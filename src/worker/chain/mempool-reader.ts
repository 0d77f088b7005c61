// Reads the transactions of a mempool that were not read yet, in parts, while the mempool keeps changing.
import type { ChainPort, TransactionFacts, WatchList } from '../../core/ports.ts';

/** How much of a mempool is read in one look: a first reading of a large one takes many, and blocks and payments are recorded in between. */
export type MempoolReading = {
  /** Transactions in one request. */
  readonly atOnce: number;
  /** After this many milliseconds a look requests no more. */
  readonly withinMs: number;
};
const READING: MempoolReading = { atOnce: 2_000, withinMs: 1_000 };
const MOST_ALARMS = 5;

export type Known = { has(txid: string): boolean };
export type Reading = {
  /** What the node lists. */
  readonly listing: ReadonlySet<string>;
  /** It is the list that was given, not one that was requested later. */
  readonly isGiven: boolean;
  /** What of it was read in this look. */
  readonly read: ReadonlySet<string>;
  readonly touched: readonly TransactionFacts[];
  /** What the node listed but did not have. */
  readonly missing: readonly string[];
  readonly more: boolean;
};

/** What of a list has been read, now or before. */
export function readOf({ listing, read }: Reading, before: Known): ReadonlySet<string> {
  const known = new Set<string>();
  for (const txid of listing) if (read.has(txid) || before.has(txid)) known.add(txid);
  return known;
}

/** What is in one of the two lists only. */
export function difference(one: ReadonlySet<string>, other: ReadonlySet<string>): string[] {
  const only: string[] = [];
  for (const txid of one) if (!other.has(txid)) only.push(txid);
  for (const txid of other) if (!one.has(txid)) only.push(txid);
  return only;
}

export type MempoolReader = {
  /** What of the last list could not be read, and why. */
  alarms(): readonly string[];
  /** Reads what was not read yet of a list, as much as one look allows. */
  read(listing: ReadonlySet<string>, known: Known): Promise<Reading>;
  /**
   * The same with the node's own list; when some of it was gone before it could be read, the list is requested again: the look is complete
   * when everything that the node still lists was read. New entries are read too, as far as they are there.
   * @param listed the node's list, where it is known already
   */
  readAll(listed: readonly string[] | null, seen: Known): Promise<Reading>;
};

/** Reads the transactions that a node lists and that were not read, as many as one look allows; what is left is read by the next. */
export function createMempoolReader(port: ChainPort, watch: WatchList, reading: MempoolReading = READING): MempoolReader {
  const { atOnce, withinMs } = reading;
  /** Why transactions of the last list cannot be read. */
  let unreadable: string[] = [];

  /** Reads what was not read yet, as much as one look allows. */
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
   * The same; when some of it was gone before it could be read, the list is requested again: the look is complete when everything that the
   * node still lists was read. New entries are read too, as far as they are there.
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
