// For whom a thread computes, in memory that it shares with whoever opened it: while it does not come back from a piece of work it tells nothing.

export type Work = {
  /** A piece of work is done for them. */
  do(whom: bigint, piece: () => void): void;
};
export type SeenWork = {
  /** The number of the piece that is under way, an even one between two. */
  piece(): bigint;
  /** For whom the last piece is, or was; null before the first. */
  whom(): bigint | null;
};

const [PIECE, WHOM] = [0, 1];

/** Memory for one thread, which has done nothing yet. */
export const sharedWork = (): SharedArrayBuffer => new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT);

/** The side of the thread. */
export function workIn(shared: SharedArrayBuffer): Work {
  const said = new BigInt64Array(shared);
  return {
    do(whom, piece) {
      Atomics.store(said, WHOM, whom);
      Atomics.add(said, PIECE, 1n);
      try {
        piece();
      } finally {
        Atomics.add(said, PIECE, 1n);
      }
    },
  };
}

/** The side of whoever watches it. */
export function seenWork(shared: SharedArrayBuffer): SeenWork {
  const said = new BigInt64Array(shared);
  const piece = (): bigint => Atomics.load(said, PIECE);
  return { piece, whom: () => (piece() === 0n ? null : Atomics.load(said, WHOM)) };
}

/** @param piece its number (`SeenWork.piece`) */
export const isUnderWay = (piece: bigint): boolean => piece % 2n === 1n;
