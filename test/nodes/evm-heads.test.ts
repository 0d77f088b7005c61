// Blocks that an Ethereum node announces over a WebSocket are looked for at once; whatever becomes of the socket, polling finds them as before.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createHeads, type Heads } from '../../src/outside/evm/heads.ts';
import { createEvmNode } from '../../src/outside/evm/node.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import { createServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { type Job, startLoop } from '../../src/worker/loop.ts';
import { type Manner, startAnnouncer } from '../support/evm/announcer.ts';
import { startAnvil } from '../support/evm/anvil.ts';
import { freshDatabase } from '../support/postgres.ts';

/** A node that nobody pays at is polled this often. */
const POLLED_MS = 2_000;
const WITHIN = { timeout: 8_000 };
const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of clean.splice(0).reverse()) await one();
});
const open = (url: string, options = {}): Heads => {
  const heads = createHeads(url, options);
  clean.push(heads.close);
  return heads;
};
async function announcer(manner: Manner) {
  const server = await startAnnouncer(manner);
  clean.push(server.close);
  return server;
}

describe('announcements', () => {
  test('are told from the subscription on, and credentials are sent as such', async () => {
    const server = await announcer('honest');
    let told = 0;
    const end = open(server.url).listen(() => told++);
    await expect.poll(() => told, WITHIN).toBe(1);
    server.announce();
    await expect.poll(() => told, WITHIN).toBe(2);
    expect(server.asked[0]?.headers.authorization).toBe(`Basic ${Buffer.from('user:secret').toString('base64')}`);
    end();
    await expect.poll(server.connections, WITHIN).toBe(0);
  });

  test('that come at once are told a few times a second, the last one too', async () => {
    const server = await announcer('honest');
    let told = 0;
    open(server.url).listen(() => told++);
    await expect.poll(() => told, WITHIN).toBe(1);
    for (let n = 0; n < 500; n++) server.announce(n);
    await delay(1_100);
    expect(told).toBeGreaterThan(1);
    expect(told).toBeLessThan(8);
  });

  test('of two listeners share a connection, and one that ends leaves it to the other', async () => {
    const server = await announcer('honest');
    const heads = open(server.url);
    let told = 0;
    const first = heads.listen(() => undefined);
    heads.listen(() => told++);
    await expect.poll(() => told, WITHIN).toBe(1);
    first();
    server.announce();
    await expect.poll(() => told, WITHIN).toBe(2);
    expect(server.asked).toHaveLength(1);
  });

  test.each([
    ['cut off', 'honest', {}],
    ['that says nothing', 'silent', { silentMs: 300 }],
    ['that refuses the subscription', 'refusing', {}],
    ['that forbids the connection', 'forbidding', {}],
  ] as const)('of a server %s are asked for again', async (what, manner, options) => {
    const server = await announcer(manner);
    open(server.url, options).listen(() => undefined);
    await expect.poll(() => server.asked.length, WITHIN).toBe(1);
    if (what === 'cut off') {
      await delay(100);
      server.cut();
    }
    await expect.poll(() => server.asked.length, { timeout: 4_000 }).toBe(2);
  });

  test.each([
    ['more than any chain has', (say: (text: string) => void) => void Array.from({ length: 3_000 }, () => say('{}'))],
    ['a message larger than any head', (say: (text: string) => void) => say(JSON.stringify({ x: 'x'.repeat(100_000) }))],
  ])('of a server that tells %s end the connection', async (_what, tell) => {
    const server = await announcer('honest');
    let told = 0;
    open(server.url).listen(() => told++);
    await expect.poll(() => told, WITHIN).toBe(1);
    tell(server.say);
    await expect.poll(server.connections, WITHIN).toBe(0);
  });

  test('that are no announcements tell nothing', async () => {
    const server = await announcer('honest');
    let told = 0;
    open(server.url).listen(() => told++);
    await expect.poll(() => told, WITHIN).toBe(1);
    for (const text of ['no json', '[]', 'null', '{"id":7,"result":"0x2"}', '{"method":"eth_other"}']) server.say(text);
    await delay(400);
    expect([told, server.connections()]).toEqual([1, 1]);
  });
});

/** A watcher in the worker's loop; how long after it was mined it has read a block, milliseconds. */
async function follow(nodeUrl: string, height: () => Promise<number>, heads: readonly Heads[]) {
  const { db, drop } = await freshDatabase();
  const clock = { now: () => Date.now(), steady: () => performance.now() };
  const source = createEvmSource({ url: nodeUrl });
  const node = createEvmNode({ currency: 'ETH', source, network: 'regtest', clock, contract: null, heads });
  const ctx = { db, ports: { clock, chains: new Map([['ETH' as const, node]]) } };
  const watcher = createChainWatcher(ctx, 'ETH', { scripts: createWatchedScripts(ctx) });
  let read: number | null = null;
  let passes = 0;
  const job: Job = {
    name: 'chain ETH',
    everyMs: () => watcher.restMs(0),
    urgent: true,
    async run() {
      const { height, more } = await watcher.pass({ quiet: true });
      read = height;
      passes++;
      return more;
    },
  };
  const loop = startLoop([job], (_name, error) => {
    throw error;
  });
  watcher.onHint(() => loop.wake('chain ETH'));
  clean.push(async () => {
    await loop.stop();
    await watcher.close();
    await node.close();
    await drop();
  });
  const isRead = async (): Promise<boolean> => read === (await height());
  await expect.poll(isRead, { timeout: 10_000 }).toBe(true);
  // it is at rest when it begins to wait
  await delay(2 * POLLED_MS);
  return {
    /** Right after a poll. */
    async readAfterMs(mine: () => Promise<unknown>): Promise<number> {
      const before = passes;
      await expect.poll(() => passes, { interval: 5, timeout: 10_000 }).toBeGreaterThan(before);
      await mine();
      const began = performance.now();
      await expect.poll(isRead, { interval: 5, timeout: 10_000 }).toBe(true);
      return performance.now() - began;
    },
  };
}

describe('a block', { timeout: 60_000 }, () => {
  test('of a real node is read long before the next poll where it is announced', async () => {
    const anvil = await startAnvil();
    clean.push(anvil.remove);
    const height = async (): Promise<number> => Number(await anvil.rpc<string>('eth_blockNumber'));
    const watched = await follow(anvil.url, height, [open(anvil.url.replace('http:', 'ws:'))]);
    const took: number[] = [];
    for (let n = 0; n < 3; n++) took.push(await watched.readAfterMs(() => anvil.mine()));
    expect(Math.min(...took)).toBeLessThan(POLLED_MS / 2);
  });

  test.each(['silent', 'mute', 'refusing', 'forbidding', 'lying', 'gone'] as const)(
    'of the simulated chain is read by polling as always beside a socket that is %s',
    async (manner) => {
      const chain = await createServedEvm({ folder: null, now: () => Date.now() });
      clean.push(chain.stop);
      const server = await announcer(manner === 'lying' || manner === 'gone' ? 'honest' : manner);
      if (manner === 'gone') await server.close().then(() => clean.pop());
      const lies = manner === 'lying' ? setInterval(() => server.announce(4_000_000), 20) : undefined;
      clean.push(() => clearInterval(lies));
      const watched = await follow(chain.url, async () => chain.state.active.length - 1, [open(server.url)]);
      const took = await watched.readAfterMs(async () => chain.mine(1));
      expect(took).toBeLessThan(2.5 * POLLED_MS);
    },
  );
});
