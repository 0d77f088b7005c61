// Which transactions of a mempool were read, and the newest number of the database at that time (early-payments.ts): a transaction of ours
// with a higher number was created after that, so they are no payments of it.

export type MempoolMemory = {
  has(txid: string): boolean;
  /** How many of the last list were read. */
  readonly size: number;
  /** A whole list was read: what is new now was not there before. */
  readonly isWhole: boolean;
  /** The newest number when it was first read; null when it never was, or long ago. */
  firstSeen(txid: string): number | null;
  /**
   * Replaces the last list: the entries new in it were read.
   * @param order the newest number of the database at some time after the list was given
   * @param isWhole whether all that the node listed was read
   */
  listed(txids: Iterable<string>, order: number, isWhole: boolean): void;
};

/** A transaction that left a mempool may come back, or be mined, much later; the newest of these are remembered. */
const REMEMBERED_GONE = 50_000;

/** A memory in which no mempool was read yet. */
export function createMempoolMemory(): MempoolMemory {
  let listed = new Map<string, number>();
  const gone = new Map<string, number>();
  let wasWhole = false;
  return {
    has: (txid) => listed.has(txid),
    get size() {
      return listed.size;
    },
    firstSeen: (txid) => listed.get(txid) ?? gone.get(txid) ?? null,
    get isWhole() {
      return wasWhole;
    },
    listed(txids, order, isWhole) {
      wasWhole ||= isWhole;
      const next = new Map<string, number>();
      for (const txid of txids) {
        next.set(txid, listed.get(txid) ?? gone.get(txid) ?? order);
        listed.delete(txid);
        gone.delete(txid);
      }
      for (const [txid, first] of listed) gone.set(txid, first);
      for (const txid of gone.keys()) {
        if (gone.size <= REMEMBERED_GONE) break;
        gone.delete(txid);
      }
      listed = next;
    },
  };
}
