// How fast the service's own watcher reads a chain that it is behind of: real watcher, real node adapter, real database, a node in a process of
// its own that can deliver. Called by bench/run.ts and the quick test.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/outside/clock.ts';
import { createUtxoNode } from '../src/outside/utxo-node.ts';
import { connect } from '../src/store/connect.ts';
import { createChainWatcher } from '../src/worker/chain-watcher.ts';
import { createWatchedScripts } from '../src/worker/watch-list.ts';
import { TRANSACTIONS } from './block.ts';
import type { Figure } from './report.ts';

/**
 * @param databaseUrl a migrated database without transactions
 * @param blocks how many blocks the watcher is behind
 */
export async function catchUp(databaseUrl: string, blocks: number): Promise<Figure> {
  const child = fork(fileURLToPath(new URL('chain-node.ts', import.meta.url)), [String(blocks)], { execArgv: [] });
  const told = () =>
    new Promise<{ port: number }>((resolve) => child.once('message', (message) => resolve(message as { port: number })));
  const { port } = await told();
  const url = `http://u:p@127.0.0.1:${port}`;
  const node = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock: systemClock });
  const db = connect({ url: databaseUrl, role: 'bursar_app', maxConnections: 4, applicationName: 'bench' });
  const ctx = { db, ports: { clock: systemClock, chains: new Map([['BTC' as const, node]]) } };
  const watcher = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
  try {
    await watcher.pass();
    const moved = told();
    child.send('go');
    await moved;
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    let read = 0;
    for (;;) {
      const pass = await watcher.pass();
      if (pass.reason !== null) throw new Error(pass.reason);
      read += pass.blocksRead;
      if (pass.caughtUp) break;
    }
    const seconds = (performance.now() - began) / 1000;
    const used = process.cpuUsage(cpu);
    if (read !== blocks - 1) throw new Error(`${read} blocks were read, not ${blocks - 1}`);
    const cpuMs = (used.user + used.system) / 1000 / read;
    return {
      work: `catch-up on blocks of ${TRANSACTIONS.toLocaleString('en')} transactions`,
      measured: `${(read / seconds).toFixed(0)} blocks/s (${cpuMs.toFixed(1)} ms of the watcher's CPU each)`,
      goal: '≥ 50 blocks/s',
    };
  } finally {
    await watcher.close();
    await node.close();
    await db.close();
    child.disconnect();
  }
}
