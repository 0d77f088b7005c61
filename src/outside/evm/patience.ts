// How long a node is asked again for what it does not say of a block, before the block is read without it. Counted for each block: others are
// read at the same time (ahead of it, and a second time at final depth), and what a node says of those is no sign that it will say it of this one.
import type { EvmBlock } from './answers.ts';

/** After this long, and this many tries, a block is read without. */
const PATIENCE_MS = 120_000;
const LEAST_TRIES = 4;
/** Blocks that are remembered, those that have failed last. */
const MOST_BLOCKS = 1_000;

type Place = Pick<EvmBlock, 'hash' | 'previousHash'>;

export type Patience = {
  /** Counts one more failure of a block. @returns whether it is read without now; one that follows such a block is so at once */
  isOver(block: Place): boolean;
  /** The node has said it of this block. */
  answered(block: Place): void;
  /** Forgets every failure: each block has its whole time again. */
  clear(): void;
};

/** @param steadyMs milliseconds of a clock that is never set */
export function createPatience(steadyMs: () => number): Patience {
  const failing = new Map<string, { readonly sinceMs: number; tries: number; isOver: boolean }>();
  return {
    isOver({ hash, previousHash }) {
      const isAfterOne = failing.get(previousHash)?.isOver === true;
      const one = failing.get(hash) ?? { sinceMs: steadyMs(), tries: 0, isOver: isAfterOne };
      one.tries++;
      one.isOver ||= one.tries >= LEAST_TRIES && steadyMs() - one.sinceMs >= PATIENCE_MS;
      failing.delete(hash);
      failing.set(hash, one);
      const [oldest] = failing.keys();
      if (failing.size > MOST_BLOCKS && oldest !== undefined) failing.delete(oldest);
      return one.isOver;
    },
    answered: ({ hash }) => void failing.delete(hash),
    clear: () => failing.clear(),
  };
}
