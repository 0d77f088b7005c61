// The measured process: Ethereum's blocks through the service's own adapters of ether and USDT. Arguments: `block <node> <open addresses>`, or
// `follow <node> <database> <blocks>`, for which it tells the parent when the node has to have so many blocks.
import { CURRENCIES } from '../src/core/currency.ts';
import type { BlockFacts, WatchList } from '../src/core/ports.ts';
import { systemClock } from '../src/outside/clock.ts';
import { createEvmNode } from '../src/outside/evm/node.ts';
import { createEvmSource } from '../src/outside/evm/source.ts';
import { connect } from '../src/store/postgres/connect.ts';
import { createByteSet } from '../src/worker/chain/byte-set.ts';
import { createWatchedScripts } from '../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../src/worker/chain/watcher.ts';
import { FIRST_TIP, hashOf, payee, TOKEN } from './evm-block.ts';
import { median } from './measure.ts';
import { residentBytes } from './processes.ts';

export type BlockResult = { readonly cpuMs: number; readonly wallMs: number; readonly found: number };
export type FollowResult = {
  readonly seconds: number;
  readonly cpuMs: number;
  readonly blocks: number;
  readonly earlyRss: number;
  readonly mostRss: number;
};

const ROUNDS = 30;
const WARM_UP = 10;
/** What is in memory after so much of the catch-up is what the rest is compared with. */
const EARLY_SHARE = 10;

function nodesAt(url: string) {
  const source = createEvmSource({ url });
  const options = { source, network: 'regtest', clock: systemClock } as const;
  return {
    ETH: createEvmNode({ ...options, currency: 'ETH', contract: null }),
    USDT: createEvmNode({ ...options, currency: 'USDT', contract: TOKEN }),
  };
}

async function readOneByOne(url: string, open: number): Promise<BlockResult> {
  if (CURRENCIES.ETH.evm === null) throw new Error('ether is on Ethereum');
  const { ETH, USDT } = nodesAt(url);
  const scripts = createByteSet();
  for (let n = 0; n < open; n++) {
    const script = Buffer.from(`65766d${payee(n)}`, 'hex');
    scripts.add(script, 0, script.length);
  }
  const watch: WatchList = {
    hasScript: (bytes, start, end) => scripts.has(bytes, start, end),
    hasOutpoint: () => false,
    fresh: () => Promise.resolve(),
  };
  const times: { wallMs: number; cpuMs: number }[] = [];
  const found = (facts: BlockFacts): number => facts.touched.reduce((sum, { outputs }) => sum + outputs.length, 0);
  let paid = 0;
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    const [ether, tokens] = await Promise.all([ETH, USDT].map((node) => node.readBlock(hashOf(1_000 + round), watch)));
    const used = process.cpuUsage(cpu);
    paid = found(ether as BlockFacts) + found(tokens as BlockFacts);
    if (round >= WARM_UP) times.push({ wallMs: performance.now() - began, cpuMs: (used.user + used.system) / 1000 });
  }
  await ETH.close();
  await USDT.close();
  const middle = (figure: 'wallMs' | 'cpuMs'): number => median(times, (one) => one[figure])[figure];
  return { cpuMs: middle('cpuMs'), wallMs: middle('wallMs'), found: paid };
}

const said = (): Promise<unknown> => new Promise((resolve) => process.once('message', resolve));
async function tellParent(tip: number): Promise<void> {
  const answered = said();
  process.send?.({ tip });
  await answered;
}

async function follow(url: string, databaseUrl: string, blocks: number): Promise<FollowResult> {
  const chains = nodesAt(url);
  const db = connect({ url: databaseUrl, role: 'bursar_app', maxConnections: 4, applicationName: 'bench' });
  const ctx = { db, ports: { clock: systemClock, chains: new Map(Object.entries(chains) as never) } };
  const scripts = createWatchedScripts(ctx as never);
  const watchers = (['ETH', 'USDT'] as const).map((code) => createChainWatcher(ctx as never, code, { scripts }));
  let most = 0;
  let early = 0;
  let read = 0;
  /** Both watchers side by side, as the worker runs them. */
  const toTheEnd = () =>
    Promise.all(
      watchers.map(async (watcher) => {
        for (;;) {
          const pass = await watcher.pass();
          if (pass.reason !== null) throw new Error(pass.reason);
          read += pass.blocksRead;
          most = Math.max(most, residentBytes(process.pid));
          if (early === 0 && read >= (2 * blocks) / EARLY_SHARE) early = most;
          if (pass.caughtUp) return;
        }
      }),
    );
  // the first look begins at the tip; the next ones show what a look without news, and what one more block costs
  await toTheEnd();
  await tellParent(FIRST_TIP);
  await toTheEnd();
  await tellParent(FIRST_TIP + 1);
  await toTheEnd();
  await tellParent(FIRST_TIP + 1 + blocks);
  [most, early, read] = [0, 0, 0];
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await toTheEnd();
  const used = process.cpuUsage(cpu);
  const seconds = (performance.now() - began) / 1000;
  for (const watcher of watchers) await watcher.close();
  await Promise.all(Object.values(chains).map((node) => node.close()));
  await db.close();
  return { seconds, cpuMs: (used.user + used.system) / 1000, blocks: read / 2, earlyRss: early, mostRss: most };
}

const [mode, url = '', third = '', fourth] = process.argv.slice(2);
process.send?.(mode === 'block' ? await readOneByOne(url, Number(third)) : await follow(url, third, Number(fourth)));
process.disconnect();
