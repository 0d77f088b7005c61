// Long work in pieces: long lists are read and written in slices, because a statement may take half a minute and its rows occupy this process
// meanwhile; long calculations yield to other work of this process.

/** The largest number of values in one statement that strangers choose: with this many a server can be made to do little. */
export const CHOSEN_AT_ONCE = 2_000;

/** Runs a function for slices of a list, one after the other; not at all for an empty list. */
export async function inParts<T>(all: Iterable<T>, size: number, run: (part: readonly T[]) => Promise<void>): Promise<void> {
  let part: T[] = [];
  for (const one of all) {
    part.push(one);
    if (part.length < size) continue;
    await run(part);
    part = [];
  }
  if (part.length > 0) await run(part);
}

/**
 * As {@link inParts}, for statements whose values take long to write down: those of the next slice are prepared while the database works on
 * the one before. No two statements run at once.
 */
export async function inPreparedParts<T, V>(
  all: Iterable<T>,
  size: number,
  { prepare, run }: { readonly prepare: (part: readonly T[]) => V; readonly run: (values: V) => Promise<unknown> },
): Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  try {
    await inParts(all, size, async (part) => {
      const values = prepare(part);
      await running;
      running = run(values);
      // a failure is thrown where it is awaited: before the next statement, or at the end
      running.catch(() => undefined);
    });
  } finally {
    await running;
  }
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
