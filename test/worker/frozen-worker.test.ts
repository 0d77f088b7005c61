// A worker that is there but does nothing (its process was stopped, its machine hangs): after a while another one ends its session and
// takes over; and when it wakes up it does no harm.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import type { ChainPort } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { type WatchedChain, watchChain } from '../nodes/watched-chain.ts';
import { openRelay } from '../support/relay.ts';
import { eventually } from '../support/service.ts';

const SILENT_MS = 1_200;
let node: ServedNode;
let chain: WatchedChain;
let relay: Awaited<ReturnType<typeof openRelay>>;
const opened: Database[] = [];
const watching: ChainWatcher[] = [];
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  chain = await watchChain('BTC', node.url);
  await chain.catchUp();
  await chain.watcher.close();
  relay = await openRelay(chain.url);
});
afterEach(async () => {
  relay.thaw();
  for (const watcher of watching.splice(0)) await watcher.close();
  for (const db of opened.splice(0)) await db.close();
  relay.close();
  await chain.close();
  await node.stop();
});

/** A watcher in a worker of its own; `onRead` is called before each block that it reads. */
function worker(url: string, onRead: () => void = () => undefined): ChainWatcher {
  const db = connect({ url, role: 'bursar_app', maxConnections: 4, applicationName: 'test worker', silentMs: SILENT_MS });
  const port = chain.ctx.ports.chains.get('BTC')!;
  const chains = new Map<UtxoCode, ChainPort>([
    [
      'BTC',
      {
        ...port,
        readBlock(...asked) {
          onRead();
          return port.readBlock(...asked);
        },
      },
    ],
  ]);
  const ctx: ChainContext = { db, ports: { ...chain.ctx.ports, chains } };
  const watcher = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
  opened.push(db);
  watching.push(watcher);
  return watcher;
}

/** All that watchers write. */
async function written(): Promise<unknown> {
  const { rows } = await chain.db.query({
    text: `select (select json_agg(b order by height) from blocks b) as blocks, (select json_agg(p order by id) from payments p) as payments,
                  (select json_build_array(height, hash, epoch) from chain_cursors) as cursor`,
  });
  return rows[0];
}

test('a worker that is silent in the middle of a pass is replaced, and writes nothing when it wakes up', async () => {
  const owed = await chain.owe();
  const first = worker(relay.url, () => relay.freeze());
  const second = worker(chain.url);
  expect(await first.pass()).toMatchObject({ role: 'watching', caughtUp: true });
  expect((await second.pass()).role).toBe('standby');
  node.pay([{ script: owed.script, minor: 100_000n }]);
  const tip = node.mine(3).height;
  const frozen = first.pass();
  const done = await eventually('the second has taken over', async () => {
    const pass = await second.pass();
    return pass.caughtUp ? pass : null;
  });
  expect(done.height).toBe(tip);
  expect(await chain.facts(owed)).toMatchObject([{ amount: 100_000n, state: 'mined', height: tip - 2 }]);
  const before = await written();
  relay.thaw();
  expect(await frozen).toMatchObject({ blocksRead: 0, caughtUp: false });
  expect(await written()).toEqual(before);
  expect((await first.pass()).role).toBe('standby');
  expect(await second.pass()).toMatchObject({ role: 'watching', caughtUp: true });
  expect((await chain.facts(owed)).length).toBe(1);
});

test('a worker that is only slow keeps its place', async () => {
  const port = chain.ctx.ports.chains.get('BTC')!;
  let goOn: () => void = () => undefined;
  let slow = Promise.resolve();
  (chain.ctx.ports.chains as Map<UtxoCode, ChainPort>).set('BTC', {
    ...port,
    readBlock: async (...asked) => {
      await slow;
      return port.readBlock(...asked);
    },
  });
  const first = worker(chain.url);
  (chain.ctx.ports.chains as Map<UtxoCode, ChainPort>).set('BTC', port);
  const second = worker(chain.url);
  expect((await first.pass()).role).toBe('watching');
  slow = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  node.mine(1);
  const reading = first.pass();
  const began = performance.now();
  const roles = new Set<string>();
  await eventually('longer than a silence', async () => {
    roles.add((await second.pass()).role);
    return performance.now() - began > 3 * SILENT_MS;
  });
  goOn();
  expect(await reading).toMatchObject({ role: 'watching', caughtUp: true, blocksRead: 1 });
  expect([...roles]).toEqual(['standby']);
});
