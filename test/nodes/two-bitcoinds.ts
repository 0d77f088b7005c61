// Two real bitcoinds with one chain, and blocks that are carried from one to the other.
import { createUtxoNode, type SingleNode } from '../../src/outside/utxo/node/node.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';

export const clock = { now: () => Date.now() };
export const host = (daemon: CoreDaemon): string => new URL(daemon.url).host;
export const node = (daemon: CoreDaemon): SingleNode =>
  createUtxoNode({ currency: 'BTC', url: daemon.url, network: 'regtest', clock, silenceMs: 2_000 });

export async function startTwoBitcoinds(): Promise<[CoreDaemon, CoreDaemon]> {
  const [a, b] = await Promise.all([startBitcoind(), startBitcoind()]);
  await a.mine(110);
  await copyBlocks(a, b);
  return [a, b];
}

/** Gives the blocks that the other does not have in its best chain, as a peer would. */
export async function copyBlocks(from: CoreDaemon, to: CoreDaemon): Promise<void> {
  const tip = await from.rpc<number>('getblockcount');
  const missing: string[] = [];
  for (let height = tip; height > 0; height--) {
    const hash = await from.rpc<string>('getblockhash', height);
    const known = await to.rpc<{ confirmations: number }>('getblockheader', hash).catch(() => null);
    if (known !== null && known.confirmations > 0) break;
    missing.unshift(hash);
  }
  for (const hash of missing) await to.rpc('submitblock', await from.rpc('getblock', hash, 0));
}
