// A block that a node cannot give (pruned, or an answer that is wrong) may be large and stay unreadable for days: it is requested again after
// growing pauses, and in between the last answer stands.
import type { ChainPort } from '../../core/ports.ts';
import { type Backoff, createBackoff } from '../backoff.ts';
import { troubleOf } from './pass-result.ts';

export type UnreadableBlocks = {
  /** The port, except that its `readBlock` throws the same trouble again without a request until the block's pause is over. */
  readonly port: ChainPort;
  /** The next reading of any block asks the node, whatever is left of its pause. */
  askAgain(): void;
};

type Unreadable = { readonly backoff: Backoff; error: unknown; untilMs: number };

/**
 * Puts pauses before repeated readings of a block that is pruned or answered wrongly; other trouble is the port's own and passes through.
 */
export function createUnreadableBlocks(port: ChainPort, nowMs: () => number = () => performance.now()): UnreadableBlocks {
  /** By block hash. */
  const unreadable = new Map<string, Unreadable>();

  function noteTrouble(hash: string, error: unknown): void {
    const state = troubleOf(error)?.state;
    if (state !== 'bad_answer' && state !== 'pruned') return;
    const backoff = unreadable.get(hash)?.backoff ?? createBackoff();
    unreadable.set(hash, { backoff, error, untilMs: nowMs() + backoff.failed() });
  }

  return {
    port: {
      ...port,
      async readBlock(hash, watch) {
        const last = unreadable.get(hash);
        if (last !== undefined && nowMs() < last.untilMs) throw last.error;
        try {
          const block = await port.readBlock(hash, watch);
          unreadable.delete(hash);
          return block;
        } catch (error) {
          noteTrouble(hash, error);
          throw error;
        }
      },
    },
    askAgain() {
      for (const one of unreadable.values()) one.untilMs = 0;
    },
  };
}
