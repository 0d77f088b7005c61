// How fast the service's own watcher reads a chain that it is behind on, and a mempool for the first time: real watcher, real node adapter,
// real database, and a fast node in its own process.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/outside/clock.ts';
import { createUtxoNode } from '../src/outside/utxo/node/node.ts';
import { connect } from '../src/store/postgres/connect.ts';
import { createWatchedScripts } from '../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../src/worker/chain/watcher.ts';
import { TRANSACTIONS } from './block.ts';
import type { Figure } from './report.ts';

type Behind = {
  /** A migrated database without transactions. */
  readonly databaseUrl: string;
  /** How many blocks the node has, and how many transactions are in its mempool. */
  readonly blocks: number;
  readonly waiting: number;
};
type CaughtUp = { readonly blocksRead: number; readonly passes: number; readonly seconds: number; readonly cpuMs: number };

/** Starts a watcher, lets the node grow, and waits until the watcher has read everything. */
async function readToTheEnd({ databaseUrl, blocks, waiting }: Behind): Promise<CaughtUp> {
  const program = fileURLToPath(new URL('chain-node.ts', import.meta.url));
  const child = fork(program, [String(blocks), String(waiting)], { execArgv: [] });
  const nextMessage = () =>
    new Promise<{ port: number }>((resolve) => child.once('message', (message) => resolve(message as { port: number })));
  const { port } = await nextMessage();
  const url = `http://u:p@127.0.0.1:${port}`;
  const node = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock: systemClock });
  const db = connect({ url: databaseUrl, role: 'bursar_app', maxConnections: 4, applicationName: 'bench' });
  const ctx = { db, ports: { clock: systemClock, chains: new Map([['BTC' as const, node]]) } };
  const watcher = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
  try {
    await watcher.pass();
    const moved = nextMessage();
    child.send('go');
    await moved;
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    let blocksRead = 0;
    let passes = 0;
    for (;;) {
      const pass = await watcher.pass();
      if (pass.reason !== null) throw new Error(pass.reason);
      blocksRead += pass.blocksRead;
      passes++;
      if (pass.caughtUp) break;
    }
    const seconds = (performance.now() - began) / 1000;
    const used = process.cpuUsage(cpu);
    return { blocksRead, passes, seconds, cpuMs: (used.user + used.system) / 1000 };
  } finally {
    await watcher.close();
    await node.close();
    await db.close();
    child.disconnect();
  }
}

/**
 * @param databaseUrl a migrated database without transactions
 * @param blocks how many blocks the watcher is behind
 */
export async function catchUp(databaseUrl: string, blocks: number): Promise<Figure> {
  const { blocksRead, seconds, cpuMs } = await readToTheEnd({ databaseUrl, blocks, waiting: 0 });
  if (blocksRead !== blocks - 1) throw new Error(`${blocksRead} blocks were read, not ${blocks - 1}`);
  return {
    work: `catch-up on blocks of ${TRANSACTIONS.toLocaleString('en')} transactions`,
    measured: `${(blocksRead / seconds).toFixed(0)} blocks/s (${(cpuMs / blocksRead).toFixed(1)} ms of the watcher's CPU each)`,
    goal: '≥ 50 blocks/s',
  };
}

/**
 * @param databaseUrl a migrated database without transactions
 * @param waiting how many unread transactions are in the mempool, while a block comes every half second
 */
export async function firstReading(databaseUrl: string, waiting: number): Promise<Figure> {
  const { blocksRead, passes, seconds, cpuMs } = await readToTheEnd({ databaseUrl, blocks: 400, waiting });
  return {
    work: `first reading of a mempool of ${waiting.toLocaleString('en')} transactions, a block every half second`,
    measured: `${seconds.toFixed(1)} s in ${passes} passes, ${blocksRead} blocks meanwhile (${((1000 * cpuMs) / waiting).toFixed(0)} µs of the watcher's CPU each)`,
    goal: 'it ends; ≤ 60 s at 100,000',
  };
}
