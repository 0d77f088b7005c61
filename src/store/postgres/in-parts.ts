// Long lists are read and written in slices: a statement may take half a minute, and its rows occupy this process meanwhile.

/** Runs a function for slices of a list, one after the other; not at all for an empty list. */
export async function inParts<T>(all: readonly T[], size: number, run: (part: readonly T[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += size) await run(all.slice(from, from + size));
}
