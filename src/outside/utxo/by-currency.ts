// Which adapter reads which chain: decided by the family in the currency's row.
import { type CurrencyCode, evmRow, isUtxo, type Network } from '../../core/currency.ts';
import type { Clock } from '../../core/ports.ts';
import { createEvmGroup } from '../evm/group.ts';
import { createHeads } from '../evm/heads.ts';
import { createEvmNode } from '../evm/node.ts';
import { createEvmSource, type EvmSource } from '../evm/source.ts';
import { createNodeGroup } from './node/group.ts';
import { type ChainNode, createUtxoNode } from './node/node.ts';

export type ChainNodesOptions = {
  readonly network: Network;
  readonly clock: Clock;
  /** RPC URLs of the configured nodes, the preferred one first; a currency without one is not available. */
  readonly urls: ReadonlyMap<CurrencyCode, readonly string[]>;
  /** The contract of USDT, lower case; null where none is known. */
  readonly tokenContract: string | null;
  /** WebSockets at which Ethereum's nodes announce new blocks (default: none). */
  readonly headUrls?: readonly string[];
};

type ChainNodes = {
  readonly chains: ReadonlyMap<CurrencyCode, ChainNode>;
  close(): Promise<void>;
};

/** One port per configured chain. `close` ends their connections. */
export function createChainNodes(options: ChainNodesOptions): ChainNodes {
  const { clock } = options;
  const chains = new Map<CurrencyCode, ChainNode>();
  /** By URL: the currencies of a chain share what a node answers. */
  const sources = new Map<string, EvmSource>();
  const heads = (options.headUrls ?? []).map((url) => createHeads(url));
  for (const [currency, urls] of options.urls) {
    if (urls.length === 0) continue;
    if (isUtxo(currency)) {
      const nodes = urls.map((url) => createUtxoNode({ currency, url, network: options.network, clock }));
      const [only] = nodes;
      chains.set(currency, only !== undefined && nodes.length === 1 ? only : createNodeGroup(nodes, { clock }));
      continue;
    }
    const isToken = evmRow(currency).evm.token !== null;
    const contract = isToken ? options.tokenContract : null;
    if (isToken && contract === null) continue;
    const nodes = urls.map((url) => {
      const source = sources.get(url) ?? createEvmSource({ url });
      sources.set(url, source);
      return createEvmNode({ currency, source, network: options.network, clock, contract, heads });
    });
    const [only] = nodes;
    chains.set(currency, only !== undefined && nodes.length === 1 ? only : createEvmGroup(nodes, { clock }));
  }
  return {
    chains,
    async close() {
      await Promise.all([...chains.values(), ...heads].map((one) => one.close()));
    },
  };
}
