// Long work in pieces: long lists are read and written in slices, because a statement may take half a minute and its rows occupy this process
// meanwhile; long calculations yield to other work of this process.

/** The largest number of values in one statement that strangers choose: a server can be made to do little with so many. */
export const CHOSEN_AT_ONCE = 2_000;

/** Runs a function for slices of a list, one after the other; not at all for an empty list. */
export async function inParts<T>(all: readonly T[], size: number, run: (part: readonly T[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += size) await run(all.slice(from, from + size));
}

/** After this long, other work of this process gets a turn. */
const TURN_MS = 10;

export type Turns = { pass(): Promise<void> };

/** For long work: between its pieces, `pass` lets other work of this process run whenever ours has taken its turn's time. */
export function createTurns(): Turns {
  let began = performance.now();
  return {
    async pass() {
      if (performance.now() - began < TURN_MS) return;
      await new Promise((resolve) => setImmediate(resolve));
      began = performance.now();
    },
  };
}
