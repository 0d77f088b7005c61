// Several nodes for one currency, real bitcoinds: which one is read, what happens when one fails and comes back, and that two with
// different histories stop large bookings until they agree again.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount } from '../../src/core/money.ts';
import type { ChainPort } from '../../src/core/ports.ts';
import { createNodeGroup } from '../../src/outside/utxo/node/group.ts';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { askCli } from '../cli/run.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { openBursar } from './bursar.ts';
import { clock, copyBlocks, host, node, startTwoBitcoinds } from './two-bitcoinds.ts';

let a: CoreDaemon;
let b: CoreDaemon;
beforeAll(async () => {
  [a, b] = await startTwoBitcoinds();
});
afterAll(() => Promise.all([a?.remove(), b?.remove()]));

test('the first that is ready is read, another stands in, and one that comes back changes nothing', async () => {
  const group = createNodeGroup([node(a), node(b)], { clock });
  expect(await group.condition()).toMatchObject({ state: 'ready', node: host(a), agreement: { state: 'agreed' } });
  await a.stop();
  expect(await group.condition()).toMatchObject({
    state: 'ready',
    node: host(b),
    agreement: { state: 'unknown' },
    others: [expect.stringContaining(`down: ${host(a)}`)],
  });
  expect(await group.hashAt(5)).toBe(await b.rpc('getblockhash', 5));
  await a.start();
  expect(await group.condition()).toMatchObject({ node: host(b), agreement: { state: 'agreed' } });
  await b.stop();
  const condition = await group.condition();
  expect(condition).toMatchObject({ state: 'ready', node: host(a) });
  await a.stop();
  const none = await group.condition();
  expect(none).toMatchObject({ state: 'down', reason: expect.stringContaining(host(b)) });
  expect(JSON.stringify([condition, none])).not.toMatch(/pa%ss|pa%25ss/);
  await Promise.all([a.start(), b.start()]);
  await group.close();
});

test('one that is ready and fails when it is read is left alone while the other works', async () => {
  const group = createNodeGroup([node(a), node(b)], { clock });
  expect(await group.condition()).toMatchObject({ node: host(a) });
  await expect(group.readBlock('ab'.repeat(32), nothing)).rejects.toMatchObject({ name: 'NodeTrouble' });
  expect(await group.condition()).toMatchObject({ node: host(b), others: [expect.stringMatching(/^failed: .*Block not found/)] });
  await group.close();
});

test('where all have failed the one that failed first is tried again, so that one that hangs is not read for as long as all rest', async () => {
  let nowMs = Date.now();
  const group = createNodeGroup([node(a), node(b)], { clock: { now: () => nowMs } });
  for (const failing of [a, b, a, b]) {
    expect(await group.condition()).toMatchObject({ node: host(failing) });
    await expect(group.readBlock('ab'.repeat(32), nothing)).rejects.toMatchObject({ name: 'NodeTrouble' });
    nowMs += 1_000;
  }
  await group.close();
});

test('one that failed rests no longer than that when our clock is set back', async () => {
  let [nowMs, steadyMs] = [Date.now(), 0];
  const group = createNodeGroup([node(a), node(b)], { clock: { now: () => nowMs, steady: () => steadyMs } });
  await expect(group.readBlock('ab'.repeat(32), nothing)).rejects.toMatchObject({ name: 'NodeTrouble' });
  expect(await group.condition()).toMatchObject({ node: host(b), others: [expect.stringMatching(/^failed: /)] });
  nowMs -= 86_400_000;
  steadyMs += 61_000;
  expect(await group.condition()).not.toHaveProperty('others');
  await group.close();
});

test('one that stops following the chain is left, and reported', async () => {
  const group = createNodeGroup([node(a), node(b)], { clock });
  expect(await group.condition()).toMatchObject({ node: host(a) });
  await b.mine(3);
  expect(await group.condition()).toMatchObject({ node: host(a), agreement: { state: 'agreed' } });
  await b.mine(3);
  expect(await group.condition()).toMatchObject({ node: host(b), others: [expect.stringMatching(/^behind: .* 6 behind$/)] });
  await copyBlocks(b, a);
  const caughtUp = await group.condition();
  expect(caughtUp).toMatchObject({ node: host(b), agreement: { state: 'agreed' } });
  expect(caughtUp).not.toHaveProperty('others');
  await group.close();
});

test('one that is a block behind and stays so is left for the other, and reported', async () => {
  await copyBlocks(b, a);
  let nowMs = Date.now();
  const group = createNodeGroup([node(a), node(b)], { clock: { now: () => nowMs } });
  expect(await group.condition()).toMatchObject({ node: host(a) });
  await b.mine(1);
  expect(await group.condition()).toMatchObject({ node: host(a), agreement: { state: 'agreed' } });
  // made good in time
  await copyBlocks(b, a);
  nowMs += 4_000;
  expect(await group.condition()).toMatchObject({ node: host(a) });
  await b.mine(1);
  expect(await group.condition()).toMatchObject({ node: host(a) });
  nowMs += 4_000;
  expect(await group.condition()).toMatchObject({ node: host(a) });
  nowMs += 2_000;
  const left = await group.condition();
  expect(left).toMatchObject({ node: host(b), agreement: { state: 'agreed' } });
  expect(left).not.toHaveProperty('others');
  nowMs += 60_000;
  expect(await group.condition()).toMatchObject({ node: host(b), others: [expect.stringMatching(/^behind: .* 1 behind$/)] });
  await copyBlocks(b, a);
  expect(await group.condition()).not.toHaveProperty('others');
  await group.close();
});

const nothing = { hasScript: () => false, hasOutpoint: () => false, fresh: async () => undefined };

test('nodes with different histories: nothing above the limit is booked until they agree, in the order of events', async () => {
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [a.url, b.url]);
  try {
    const worker = bursar.worker(100);
    await bursar.settle(worker);
    const [large, small] = [await bursar.owe(2_500_00n), await bursar.owe(900_00n)];
    for (const made of [large, small]) await a.pay(made.address, formatAmount(made.amountDue, 'BTC'));
    // b has another block at the same height
    await b.rpc('generateblock', await b.address(), []);
    await a.mine(4);
    const seen = await worker.pass();
    expect(seen).toMatchObject({ state: 'ready', alarms: [expect.stringContaining('contradict each other')] });
    expect(seen.alarms[0]).toContain(host(a));
    expect(seen.alarms[0]).toContain(host(b));
    await bursar.settle(worker);
    expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending']);
    expect((await bursar.story(small.transactionId)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    const folder = mkdtempSync(join(tmpdir(), 'bursar-status-'));
    const here = { DATABASE_URL: bursar.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
    const shown = await askCli<{ chains: { contested: string }[] }>(['chain', 'status'], here, 1);
    expect(shown.chains[0]?.contested).toMatch(/^at height \d+ .* has block .* and .* has /);
    await rm(folder, { recursive: true, force: true });
    // the contradiction outlives the other node: it stands until both are seen to agree
    await b.stop();
    await bursar.settle(worker);
    expect((await readChainStatus(bursar.ctx.db))[0]).toMatchObject({ state: 'ready', contested: expect.any(String) });
    expect((await bursar.story(large.transactionId)).entries).toBe(0);
    await b.start();
    await copyBlocks(a, b);
    await bursar.settle(worker);
    expect((await readChainStatus(bursar.ctx.db))[0]).toMatchObject({ contested: null });
    expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await bursar.available()).toBe(large.amountDue + small.amountDue);
    // the one that is read dies in the middle of a payment; the other goes on, nothing is booked twice
    const third = await bursar.owe(50_00n);
    const txid = await a.pay(third.address, formatAmount(third.amountDue, 'BTC'));
    await b.rpc('sendrawtransaction', await a.rpc('getrawtransaction', txid));
    await bursar.settle(worker);
    await a.stop();
    await b.rpc('generateblock', await b.address(), [txid]);
    await bursar.settle(worker);
    expect((await bursar.story(third.transactionId)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    await a.start();
    await bursar.settle(worker);
    expect((await bursar.story(third.transactionId)).entries).toBe(1);
    expect(await bursar.findings()).toEqual([]);
  } finally {
    await bursar.close();
  }
}, 60_000);

test('a contradiction is known before the blocks over it: a judge that looks after every write books nothing above the limit', async () => {
  await copyBlocks(a, b);
  await copyBlocks(b, a);
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [a.url, b.url]);
  const { db } = bursar.ctx;
  const woken: Database = {
    ...db,
    async transaction(work) {
      const result = await db.transaction(work);
      await bursar.judge();
      return result;
    },
  };
  const ctx = { ...bursar.ctx, db: woken };
  const worker = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx), blocksPerPass: 100 });
  try {
    await bursar.settle(worker);
    const large = await bursar.owe(2_500_00n);
    await a.pay(large.address, formatAmount(large.amountDue, 'BTC'));
    await a.mine(2);
    await copyBlocks(a, b);
    await worker.pass();
    expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending']);
    // each finds a third block of its own: for one of them the payment would be deep enough
    await b.rpc('generateblock', await b.address(), []);
    await a.mine(1);
    expect(await worker.pass()).toMatchObject({ alarms: [expect.stringContaining('contradict each other')] });
    await bursar.judge();
    expect((await bursar.story(large.transactionId)).entries).toBe(0);
    await a.mine(1);
    await copyBlocks(a, b);
    await bursar.settle(worker);
    expect((await bursar.story(large.transactionId)).entries).toBe(1);
  } finally {
    await worker.close();
    await bursar.close();
  }
}, 60_000);

test('the winning branch arrives block by block: nothing above the limit is booked before the nodes agree on the block that was read', async () => {
  await copyBlocks(a, b);
  await copyBlocks(b, a);
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [a.url, b.url]);
  const port = bursar.ctx.ports.chains.get('BTC') as ChainPort;
  /** Blocks of the branch that wins: each time one is read from a, the next has come there. */
  let arriving: string[] = [];
  const moving: ChainPort = {
    ...port,
    async readBlock(hash, watch) {
      const facts = await port.readBlock(hash, watch);
      const next = arriving.shift();
      if (next !== undefined) await a.rpc('submitblock', next);
      return facts;
    },
  };
  const ctx = { ...bursar.ctx, ports: { ...bursar.ctx.ports, chains: new Map([['BTC' as const, moving]]) } };
  const worker = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx), blocksPerPass: 100 });
  const contested = async () => (await readChainStatus(bursar.ctx.db))[0]?.contested;
  try {
    await bursar.settle(worker);
    const large = await bursar.owe(2_500_00n);
    const txid = await a.pay(large.address, formatAmount(large.amountDue, 'BTC'));
    const fork = await b.rpc<number>('getblockcount');
    await a.mine(4);
    for (let i = 0; i < 9; i++) await b.rpc('generateblock', await b.address(), []);
    const branch: string[] = [];
    for (let height = fork + 1; height <= fork + 9; height++)
      branch.push(await b.rpc('getblock', await b.rpc('getblockhash', height), 0));
    await worker.pass();
    expect(await contested()).toContain('has block');
    for (const block of branch.slice(0, 5)) await a.rpc('submitblock', block);
    arriving = branch.slice(5);
    for (let pass = 0; (await contested()) !== null; pass++) {
      expect(pass).toBeLessThan(100);
      await worker.pass();
      while (await bursar.judge());
      expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending']);
    }
    expect(arriving).toEqual([]);
    await b.rpc('sendrawtransaction', await a.rpc('getrawtransaction', txid)).catch(() => undefined);
    await a.mine(3);
    await copyBlocks(a, b);
    await bursar.settle(worker);
    expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  } finally {
    await worker.close();
    await bursar.close();
  }
}, 60_000);
