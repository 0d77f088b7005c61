// Which adapter reads which chain: the currency row's family decides. Called by main/wire.ts.
import type { Network, UtxoCode } from '../core/currency.ts';
import type { Clock } from '../core/ports.ts';
import { createUtxoNode, type UtxoNode } from './utxo-node.ts';

export type ChainNodesOptions = {
  readonly network: Network;
  readonly clock: Clock;
  /** RPC URLs of the nodes that are configured; a coin without one is not available. */
  readonly urls: ReadonlyMap<UtxoCode, string>;
};

/** One port per configured chain. `close` ends their connections. */
export function createChainNodes(options: ChainNodesOptions): {
  readonly chains: ReadonlyMap<UtxoCode, UtxoNode>;
  close(): Promise<void>;
} {
  const chains = new Map<UtxoCode, UtxoNode>();
  for (const [currency, url] of options.urls)
    chains.set(currency, createUtxoNode({ currency, url, network: options.network, clock: options.clock }));
  return {
    chains,
    async close() {
      await Promise.all([...chains.values()].map((node) => node.close()));
    },
  };
}
