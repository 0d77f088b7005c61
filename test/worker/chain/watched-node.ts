// A simulated node and a watcher that has read its chain, made anew for each test of a file.
import { afterEach, beforeEach } from 'vitest';
import type { UtxoCode } from '../../../src/core/currency.ts';
import type { ChainPort } from '../../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../../src/sandbox/utxo/served-node.ts';
import { type WatchedChain, watchChain } from '../../nodes/watched-chain.ts';

export type WatchedNode = {
  readonly node: ServedNode;
  readonly chain: WatchedChain;
  /** Gives the watchers that are made from now on another port; `change` gets the one that they had. */
  changePort(change: (port: ChainPort) => Partial<ChainPort>): void;
};

/** Registers the hooks; what it returns belongs to the running test. */
export function watchedNode(currency: UtxoCode = 'BTC'): WatchedNode {
  let node: ServedNode;
  let chain: WatchedChain;
  beforeEach(async () => {
    node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() });
    chain = await watchChain(currency, node.url);
    await chain.catchUp();
  });
  afterEach(async () => {
    await chain.close();
    await node.stop();
  });
  return {
    get node() {
      return node;
    },
    get chain() {
      return chain;
    },
    changePort(change) {
      const ports = chain.ctx.ports.chains as Map<UtxoCode, ChainPort>;
      const port = ports.get(currency) as ChainPort;
      ports.set(currency, { ...port, ...change(port) });
    },
  };
}
