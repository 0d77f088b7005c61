// What a node announces: transactions that come together are looked at together, those of a block that are recorded already cost nothing
// more, and what the node says of its mempool's entries is asked in one request.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChainPort } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import type { Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

const WITHIN = { timeout: 10_000, interval: 10 };
let node: ServedNode;
let chain: WatchedChain;
let port: ChainPort;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now(), announces: true });
  node.mine(5);
  chain = await watchChain('BTC', node.url);
  port = chain.ctx.ports.chains.get('BTC') as ChainPort;
  const connected = hints();
  await chain.catchUp();
  await expect.poll(() => connected.count, WITHIN).toBeGreaterThan(0);
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});
const pay = (script: Buffer): Transaction => node.pay([{ script, minor: 9_000n }]) as Transaction;

test('transactions that are announced together are handed over together, and none is missing', async () => {
  const { script } = await chain.owe();
  const handed: number[] = [];
  const subscription = await port.subscribe({ onHint: () => undefined, onTransactions: (raws) => handed.push(raws.length) });
  const count = () => handed.reduce((sum, one) => sum + one, 0);
  await expect
    .poll(() => {
      pay(script);
      return handed.length;
    }, WITHIN)
    .toBeGreaterThan(0);
  await expect.poll(() => subscription?.isLive(), WITHIN).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 100));
  handed.length = 0;
  for (let n = 0; n < 30; n++) pay(script);
  await expect.poll(count, WITHIN).toBe(30);
  expect(handed.length).toBeLessThan(10);
  for (let n = 0; n < 1_200; n++) pay(script);
  await expect.poll(count, WITHIN).toBe(1_230);
  await subscription?.close();
});

/** The hints of the watcher from now on. */
function hints(): { count: number } {
  const seen = { count: 0 };
  chain.watcher.onHint(() => seen.count++);
  return seen;
}

test('a recorded payment that its block announces again makes no pass besides that of the block', async () => {
  const owed = await chain.owe();
  pay(owed.script);
  await chain.catchUp();
  const seen = hints();
  const other = await chain.owe();
  const announced = pay(other.script);
  await expect.poll(() => seen.count, WITHIN).toBe(1);
  await chain.catchUp();
  expect(await chain.facts(other)).toMatchObject([{ txid: announced.txid, state: 'mempool' }]);
  node.mine(1);
  await expect.poll(() => seen.count, WITHIN).toBe(2);
  await chain.catchUp();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(seen.count).toBe(2);
  for (const one of [owed, other]) expect(await chain.facts(one)).toMatchObject([{ state: 'mined' }]);
});

test('a listed payment that was replaced and is announced again is seen again', async () => {
  const owed = await chain.owe();
  const paid = pay(owed.script);
  await chain.catchUp();
  const seen = hints();
  let looked = 0;
  /** What is recorded after the passes that hints ask for; there is no other pass. */
  async function factsAfterHints() {
    if (seen.count > looked) {
      looked = seen.count;
      await chain.watcher.pass({ quiet: true });
    }
    return (await chain.facts(owed))[0];
  }
  const rival = node.doubleSpend([paid])[0] as Transaction;
  await expect.poll(factsAfterHints, WITHIN).toMatchObject({ txid: paid.txid, state: 'conflicted', conflictTxid: rival.txid });
  node.evict([rival]);
  node.enter(paid, { denied: false });
  await expect.poll(factsAfterHints, WITHIN).toMatchObject({ txid: paid.txid, state: 'mempool', conflictTxid: null });
});

test('a payment that is announced while the node’s list is on its way is seen at the next look, not only in the next list', async () => {
  const owed = await chain.owe();
  let announced: Transaction | null = null;
  const seen = { count: 0 };
  const late: ChainPort = {
    ...port,
    async condition(asked) {
      const condition = await port.condition(asked);
      if (asked?.mempool !== true || announced !== null) return condition;
      announced = pay(owed.script);
      const { count } = seen;
      await expect.poll(() => seen.count, WITHIN).toBeGreaterThan(count);
      return condition;
    },
  };
  (chain.ctx.ports.chains as Map<'BTC', ChainPort>).set('BTC', late);
  await chain.restart();
  chain.watcher.onHint(() => seen.count++);
  await chain.catchUp();
  await expect.poll(() => seen.count, WITHIN).toBeGreaterThan(0);
  await chain.catchUp();
  const until = () => chain.watcher.pass({ quiet: true }).then(() => announced);
  await expect.poll(until, WITHIN).not.toBe(null);
  await chain.watcher.pass({ quiet: true });
  expect(await chain.facts(owed)).toMatchObject([{ txid: (announced as Transaction | null)?.txid, state: 'mempool' }]);
});

test('the entries of a mempool are asked together; one that is not there is left out', async () => {
  const { script } = await chain.owe();
  const beganMs = Date.now();
  const paid = Array.from({ length: 120 }, () => pay(script).txid);
  const gone = 'ab'.repeat(32);
  const entries = await port.mempoolEntries([...paid.slice(0, 60), gone, ...paid.slice(60)]);
  expect([...entries.keys()]).toEqual(paid);
  const { height } = node.state.active.at(-1) as { height: number };
  for (const entry of entries.values()) {
    expect(entry.height).toBe(height);
    expect(entry.atMs).toBeGreaterThan(beganMs - 2_000);
  }
  expect(await port.mempoolEntries([])).toEqual(new Map());
});
