// Reads a block without knowing in advance what to look for: collects every script as long as an address's, to look them up in the
// database.
import type { WatchList } from '../core/ports.ts';
import { createByteSet } from './byte-set.ts';

export type Collector = {
  readonly watch: WatchList;
  scripts(): readonly Uint8Array[];
  /** Whether one of the outpoints it was created with was spent. */
  spent(): boolean;
};

/**
 * A watch list that watches no script but remembers each different one.
 * @param outpoints reports also whether one of these is spent
 */
export function createCollector(outpoints: Pick<WatchList, 'hasOutpoint'> | null = null): Collector {
  const seen = createByteSet();
  const scripts: Uint8Array[] = [];
  let spent = false;
  return {
    watch: {
      hasScript(bytes, start, end) {
        if (end > start && end - start <= LONGEST && seen.add(bytes, start, end)) scripts.push(bytes.slice(start, end));
        return false;
      },
      hasOutpoint(bytes, start) {
        if (!spent && outpoints?.hasOutpoint(bytes, start) === true) spent = true;
        return false;
      },
      fresh: async () => undefined,
    },
    scripts: () => scripts,
    spent: () => spent,
  };
}
/** No address of ours has a longer script. */
const LONGEST = 42;
