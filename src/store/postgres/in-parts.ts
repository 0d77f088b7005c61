// Long lists are asked for and written in slices: a statement has half a minute, and what it brings or takes holds this process meanwhile.

/** Runs something for slices of a list, one after the other; not at all for an empty one. */
export async function inParts<T>(all: readonly T[], size: number, run: (part: readonly T[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += size) await run(all.slice(from, from + size));
}
