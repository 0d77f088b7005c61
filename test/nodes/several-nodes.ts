// Ether watched by several nodes of one chain, as a worker watches it that was just started.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { Clock } from '../../src/core/ports.ts';
import { createEvmGroup } from '../../src/outside/evm/group.ts';
import { createEvmNode } from '../../src/outside/evm/node.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import type { WatchedChain } from './watched-chain.ts';

const ETH: CurrencyCode = 'ETH';

export type Watching = { readonly ctx: ChainContext; readonly watcher: ChainWatcher; stop(): Promise<void> };

/** @param urls of the nodes, the one that is read first; for answers of the others we wait as long as `patienceMs` says */
export function watchBySeveral(
  chain: WatchedChain,
  urls: readonly string[],
  { clock, patienceMs }: { readonly clock: Clock; readonly patienceMs: number },
): Watching {
  const nodes = urls.map((url) =>
    createEvmNode({ currency: 'ETH', source: createEvmSource({ url }), network: 'regtest', clock, contract: null }),
  );
  const group = createEvmGroup(nodes, { clock, patienceMs });
  const ctx = { ...chain.ctx, ports: { clock, chains: new Map([[ETH, group]]) } };
  const watcher = createChainWatcher(ctx, ETH, { scripts: createWatchedScripts(ctx) });
  return {
    ctx,
    watcher,
    async stop() {
      await watcher.close();
      await group.close();
    },
  };
}
