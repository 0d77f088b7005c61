// Reads a block without knowing in advance what to look for: collects every script as long as an address's, to look them up in the
// database. Miners choose how many that are, so the scripts are bytes in one area, outside the heap: no object each, and no view that would
// hold the block.
import type { WatchList } from '../../core/ports.ts';
import { createByteSet } from '../chain/byte-set.ts';

export type Collector = {
  readonly watch: WatchList;
  /** Each different script once; each is a view that is valid until the watch list is asked again. */
  scripts(): Iterable<Uint8Array>;
  readonly count: number;
  readonly memoryBytes: number;
  /** Whether one of the outpoints it was created with was spent. */
  spent(): boolean;
};

/**
 * A watch list that watches no script but remembers each different one.
 * @param outpoints reports also whether one of these is spent
 */
export function createCollector(outpoints: Pick<WatchList, 'hasOutpoint'> | null = null): Collector {
  const seen = createByteSet();
  let spent = false;
  return {
    watch: {
      hasScript(bytes, start, end) {
        if (end - start >= SHORTEST && end - start <= LONGEST) seen.add(bytes, start, end);
        return false;
      },
      hasOutpoint(bytes, start) {
        if (!spent && outpoints?.hasOutpoint(bytes, start) === true) spent = true;
        return false;
      },
      fresh: async () => undefined,
    },
    scripts: () => seen.values(),
    get count() {
      return seen.size;
    },
    get memoryBytes() {
      return seen.memoryBytes;
    },
    spent: () => spent,
  };
}
/** No address of ours has a shorter script (P2WPKH), … */
const SHORTEST = 22;
/** … or a longer one. */
const LONGEST = 42;
