// Every channel that a Lightning node has had open while this signer knew it, in a chained file of its own folder. A node that was put back to before it had one
// has forgotten it, and a database that was put back with it never knew it.
import { join } from 'node:path';
import type { Network } from '../../core/currency.ts';
import { openChainedFile } from '../chained-file.ts';
import { createTurns } from '../turns.ts';

export type KnownChannelsFile = {
  /** Resolves when those that are new are on disk. */
  add(node: string, points: readonly string[]): Promise<void>;
  /** Those of a node. */
  of(node: string): readonly string[];
  close(): Promise<void>;
};

const CHANNELS = 'lightning-channels.jsonl';
const WHAT =
  'every channel that a Lightning node of Bursar has had open; never edit it, never put an older copy of this file back';
const WAY =
  'move it away: a new one is made with the channels that the node lists then, and nothing is paid over Lightning until it is there (a channel that the database and the node have both forgotten is in no other)';

type Line = { readonly node: string; readonly points: readonly string[] };

/** @param folder the signer's own. Throws DamagedFile when a line in it was changed, or when it belongs to another network */
export async function openKnownChannels(folder: string, network: Network): Promise<KnownChannelsFile> {
  const known = new Map<string, Set<string>>();
  const inTurn = createTurns();
  function take({ node, points }: Line): void {
    known.set(node, new Set([...(known.get(node) ?? []), ...points]));
  }
  const file = await openChainedFile(join(folder, CHANNELS), {
    network,
    what: WHAT,
    way: WAY,
    take(text) {
      take(JSON.parse(text) as Line);
      return true;
    },
  });
  return {
    add: (node, points) =>
      inTurn(async () => {
        const line = { node, points: points.filter((point) => known.get(node)?.has(point) !== true) };
        if (line.points.length === 0) return;
        await file.append(JSON.stringify(line));
        take(line);
      }),
    of: (node) => [...(known.get(node) ?? [])],
    close: file.close,
  };
}
