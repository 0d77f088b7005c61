// A mempool that keeps changing: fee replacements between the list and the reading, blocks while a large one is read for the first time.
// Neither may keep a chain from being read to its end, or make anything be read twice.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChainPort } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import type { Transaction } from '../../src/sandbox/utxo/transaction.ts';
import type { MempoolReading } from '../../src/worker/chain/mempool-reader.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

const MINUTE_MS = 60_000;
const foreign = Buffer.concat([Buffer.from('0014', 'hex'), Buffer.alloc(20, 9)]);

let node: ServedNode;
let chain: WatchedChain;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() + (chain?.skew ?? 0) });
  node.mine(5);
  chain = await watchChain('BTC', node.url);
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

/** A new watcher whose node does some things in another way. */
async function restartWith(changed: (port: ChainPort) => Partial<ChainPort>, reading?: MempoolReading): Promise<void> {
  await chain.watcher.close();
  const port = chain.ctx.ports.chains.get('BTC') as ChainPort;
  const chains = new Map([['BTC' as const, { ...port, ...changed(port) }]]);
  const ctx = { ...chain.ctx, ports: { ...chain.ctx.ports, chains } };
  chain.watcher = createChainWatcher(ctx, 'BTC', {
    scripts: createWatchedScripts(ctx),
    ...(reading === undefined ? {} : { mempoolReading: reading }),
  });
}

/** The node replaces the newest of a row of foreign transactions whenever one of its mempool is to be read. */
async function replaceAtEveryReading(): Promise<void> {
  let last = node.pay([{ script: foreign, minor: 1_000_000n }]) as Transaction;
  let minor = 999_000n;
  await restartWith((port) => ({
    async mempool() {
      const listing = await port.mempool();
      last = node.replace(last, [{ script: foreign, minor: minor-- }]) as Transaction;
      return listing;
    },
  }));
}

test('fee replacements between the list and the reading do not stop the clock of the chain', async () => {
  await replaceAtEveryReading();
  for (let minute = 0; minute < 20; minute++) {
    chain.skew += MINUTE_MS;
    const beganMs = chain.ctx.ports.clock.now();
    expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: true, alarms: [] });
    expect((await chain.cursor())?.caught_up_at.getTime()).toBeGreaterThanOrEqual(beganMs);
  }
});

test('a payment that comes after the window while others are replaced was never waited for', async () => {
  const owed = await chain.owe();
  await replaceAtEveryReading();
  const windowMs = 15 * MINUTE_MS;
  for (let minute = 0; minute < 17; minute++) {
    chain.skew += MINUTE_MS;
    await chain.watcher.pass();
  }
  node.pay([{ script: owed.script, minor: 9_000n }]);
  await chain.watcher.pass();
  const { rows } = await chain.db.query<{ caught_up: string; seen: string }>({
    text: `select extract(epoch from p.caught_up_at - t.window_ends_at) * 1000 as caught_up, extract(epoch from p.seen_at - t.created_at) * 1000 as seen
             from payments p join transactions t on t.id = p.transaction_id`,
  });
  expect(Number(rows[0]?.seen)).toBeGreaterThan(windowMs + MINUTE_MS);
  expect(Number(rows[0]?.caught_up)).toBeGreaterThan(MINUTE_MS);
});

test('what replaced a payment between the list and the reading is found in the same pass', async () => {
  const owed = await chain.owe();
  const first = node.pay([{ script: owed.script, minor: 9_000n }]) as Transaction;
  await chain.catchUp();
  let second: Transaction | null = node.replace(first, [{ script: owed.script, minor: 8_000n }]);
  let third: Transaction | null = null;
  await restartWith((port) => ({
    async mempool() {
      const listing = await port.mempool();
      if (second !== null) third = node.replace(second, [{ script: owed.script, minor: 7_000n }]);
      second = null;
      return listing;
    },
  }));
  expect(await chain.watcher.pass()).toMatchObject({ caughtUp: true });
  expect(await chain.facts(owed)).toMatchObject([
    { txid: first.txid, state: 'conflicted', conflictTxid: (third as Transaction | null)?.txid },
    { txid: (third as Transaction | null)?.txid, state: 'mempool' },
  ]);
});

test('what the node lists again and still denies keeps the pass from being complete', async () => {
  node.pay([{ script: foreign, minor: 10_000n }]);
  await restartWith((port) => ({
    readMempoolTransactions: async (txids) => {
      await port.mempool();
      return { touched: [], unread: [], missing: txids };
    },
  }));
  for (let i = 0; i < 3; i++) expect(await chain.watcher.pass()).toMatchObject({ caughtUp: false });
});

test.each(['a block', 'a reorganisation'])('%s in each reading of the mempool lets nothing be read twice', async (what) => {
  const owed = await chain.owe();
  for (let i = 0; i < 60; i++) node.pay([{ script: foreign, minor: 10_000n + BigInt(i) }]);
  const paid = node.pay([{ script: owed.script, minor: 9_000n }]) as Transaction;
  const asked: string[] = [];
  let moves = 4;
  await restartWith((port) => ({
    async readMempoolTransactions(txids, watch) {
      asked.push(...txids);
      const read = await port.readMempoolTransactions(txids, watch);
      if (moves-- > 0) {
        if (what === 'a block') node.mine(1, { transactions: [] });
        else node.reorg(1, { drop: false });
      }
      return read;
    },
  }));
  await chain.catchUp();
  expect(asked).toHaveLength(61);
  expect(await chain.facts(owed)).toMatchObject([{ txid: paid.txid, state: 'mempool', gone: false }]);
});

test('a large mempool is read in parts: blocks are followed and payments recorded in between', async () => {
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  for (let i = 0; i < 65; i++) node.pay([{ script: foreign, minor: 10_000n + BigInt(i) }]);
  const parts: number[] = [];
  await restartWith(
    (port) => ({
      readMempoolTransactions(txids, watch) {
        parts.push(txids.length);
        return port.readMempoolTransactions(txids, watch);
      },
    }),
    { atOnce: 20, withinMs: 0 },
  );
  for (let pass = 1; pass <= 3; pass++) {
    const { height } = node.mine(1, { transactions: [] });
    expect(await chain.watcher.pass()).toMatchObject({ caughtUp: false, more: true, height });
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
  }
  expect(await chain.watcher.pass()).toMatchObject({ caughtUp: true, more: false });
  expect(parts).toEqual([20, 20, 20, 6]);
});
