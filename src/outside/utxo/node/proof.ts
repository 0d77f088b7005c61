// A node with more blocks than the one that is read must show them before it is chosen: they are read from it, follow each other from the
// highest block that both hold, and on mainnet each proves about as much work as the last blocks before them.

import type { BlockRef } from '../../../core/block-ref.ts';
import type { ReadingNode } from './node.ts';
import { within } from './patience.ts';
import { NodeTrouble } from './trouble.ts';

export type NodeProof = {
  /**
   * Goes on with the proof for a while: within the call, unless that was too short before.
   * @param from the highest block that both nodes hold
   * @param tip what it claims
   * @param reader the node that is read
   * @returns whether all blocks up to its tip are shown
   */
  isShown(from: BlockRef, tip: BlockRef, reader: ReadingNode): Promise<boolean>;
};

/** How many of the last agreed blocks show how much work a block takes, and how much easier the next may be. */
const COMPARED_BLOCKS = 10;
const MOST_EASIER = 4n;

/** @param onTrouble what it showed is not what it claims */
export function createNodeProof(node: ReadingNode, patienceMs: number, onTrouble: (trouble: NodeTrouble) => void): NodeProof {
  /** Up to here its blocks were shown. */
  let shown: BlockRef | null = null;
  let going: Promise<void> | null = null;
  /** What it shows takes longer than anybody waits. */
  let isSlow = false;

  async function goOn(from: BlockRef, tip: BlockRef, reader: ReadingNode): Promise<void> {
    const endsAtMs = performance.now() + patienceMs;
    const easiest = await easiestAfter(reader, from.hash);
    let at = shown !== null && shown.height > from.height && (await node.hashAt(shown.height)) === shown.hash ? shown : from;
    while (at.height < tip.height && performance.now() < endsAtMs) {
      const height = at.height + 1;
      const hash = await node.hashAt(height);
      if (hash === null)
        throw new NodeTrouble('bad_answer', `${node.name}: it claims ${tip.height} blocks and has no block ${height}`);
      // its chain may have changed since: the next look begins anew
      if ((await node.proveBlock(hash, easiest)) !== at.hash) {
        shown = null;
        return;
      }
      at = { height, hash };
      shown = at;
    }
  }

  return {
    async isShown(from, tip, reader) {
      if (going === null) {
        going = goOn(from, tip, reader)
          .catch((error: unknown) => {
            if (!(error instanceof NodeTrouble)) throw error;
            shown = null;
            onTrouble(error);
          })
          .finally(() => {
            going = null;
          });
        if (!isSlow) await within(going, patienceMs);
      }
      isSlow = shown?.hash !== tip.hash;
      return !isSlow;
    },
  };
}

/** The easiest target that a block after this one may have; null on networks whose blocks prove nothing. */
async function easiestAfter(reader: ReadingNode, hash: string): Promise<bigint | null> {
  let easiest: bigint | null = null;
  for (let at = hash, n = 0; n < COMPARED_BLOCKS; n++) {
    const found = await reader.targetAt(at);
    if (found === null) return null;
    if (easiest === null || found.target > easiest) easiest = found.target;
    at = found.previousHash;
  }
  return easiest === null ? null : easiest * MOST_EASIER;
}
