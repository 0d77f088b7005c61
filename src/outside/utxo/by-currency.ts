// Which adapter reads which chain: decided by the family in the currency's row.
import type { Network, UtxoCode } from '../../core/currency.ts';
import type { Clock } from '../../core/ports.ts';
import { createNodeGroup } from './node/group.ts';
import { createUtxoNode, type UtxoNode } from './node/node.ts';

export type ChainNodesOptions = {
  readonly network: Network;
  readonly clock: Clock;
  /** RPC URLs of the configured nodes, the preferred one first; a currency without one is not available. */
  readonly urls: ReadonlyMap<UtxoCode, readonly string[]>;
};

/** One port per configured chain. `close` ends their connections. */
export function createChainNodes(options: ChainNodesOptions): {
  readonly chains: ReadonlyMap<UtxoCode, UtxoNode>;
  close(): Promise<void>;
} {
  const { network, clock } = options;
  const chains = new Map<UtxoCode, UtxoNode>();
  for (const [currency, urls] of options.urls) {
    const nodes = urls.map((url) => createUtxoNode({ currency, url, network, clock }));
    const [only] = nodes;
    if (only !== undefined) chains.set(currency, nodes.length === 1 ? only : createNodeGroup(nodes, { clock }));
  }
  return {
    chains,
    async close() {
      await Promise.all([...chains.values()].map((node) => node.close()));
    },
  };
}
