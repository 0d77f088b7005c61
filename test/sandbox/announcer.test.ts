// What the sandbox's nodes announce, as libzmq's own subscriber receives it: the same as bitcoind's -zmqpubrawtx and -zmqpubhashblock.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Subscriber } from 'zeromq';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import type { Transaction } from '../../src/sandbox/utxo/transaction.ts';

const WITHIN = { timeout: 10_000, interval: 20 };
const script = Buffer.concat([Buffer.from('0014', 'hex'), Buffer.alloc(20, 9)]);

let node: ServedNode;
let subscriber: Subscriber;
let heard: { topic: string; body: string; counter: number }[];
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now(), announces: true });
  subscriber = new Subscriber({ linger: 0, reconnectInterval: 20 });
  subscriber.connect(node.publishesAt() as string);
  subscriber.subscribe('rawtx', 'hashblock');
  heard = [];
  void listen();
  await expect
    .poll(() => {
      node.mine(1);
      return heard.some(({ topic }) => topic === 'rawtx') && heard.some(({ topic }) => topic === 'hashblock');
    }, WITHIN)
    .toBe(true);
  const last = node.mine(1).hash;
  await expect.poll(() => heard.at(-1)?.body, WITHIN).toBe(last);
  heard.length = 0;
});
afterEach(async () => {
  subscriber.close();
  await node.stop();
});
async function listen(): Promise<void> {
  try {
    for await (const [topic, body, counter] of subscriber)
      heard.push({ topic: String(topic), body: body?.toString('hex') ?? '', counter: counter?.readUInt32LE(0) ?? -1 });
  } catch {
    // it was closed
  }
}
const rawOf = (transaction: Transaction): string => transaction.raw.toString('hex');

test('a transaction that enters the mempool, and a block with what it mines, each counted by its topic', async () => {
  const paid = node.pay([{ script, minor: 9_000n }]) as Transaction;
  const block = node.mine(1);
  await expect.poll(() => heard.length, WITHIN).toBe(4);
  expect(heard.map(({ topic, body }) => [topic, body])).toEqual([
    ['rawtx', rawOf(paid)],
    ['rawtx', rawOf(block.transactions[0] as Transaction)],
    ['rawtx', rawOf(paid)],
    ['hashblock', block.hash],
  ]);
  const counters = heard.filter(({ topic }) => topic === 'rawtx').map(({ counter }) => counter);
  expect(counters.map((counter) => counter - (counters[0] as number))).toEqual([0, 1, 2]);
});

test('the blocks of a reorganisation', async () => {
  node.reorg(1, { drop: false });
  const tips = node.state.active.slice(-2).map(({ hash }) => hash);
  await expect.poll(() => heard.filter(({ topic }) => topic === 'hashblock').map(({ body }) => body), WITHIN).toContain(tips[1]);
  expect(heard.filter(({ topic }) => topic === 'hashblock').map(({ body }) => body)).toEqual(expect.arrayContaining(tips));
});

test('nothing of what it denies, nothing while it is cut off, and again when it is back', async () => {
  const trouble = (down: boolean) => node.setTrouble({ down, fault: null, left: null });
  trouble(true);
  node.pay([{ script, minor: 9_000n }]);
  trouble(false);
  await expect
    .poll(() => {
      node.mine(1, { transactions: [] });
      return heard.some(({ topic }) => topic === 'hashblock');
    }, WITHIN)
    .toBe(true);
  const paid = node.pay([{ script, minor: 8_000n }]) as Transaction;
  await expect.poll(() => heard.map(({ body }) => body), WITHIN).toContain(rawOf(paid));
  const waiting = [...node.state.mempool.values()].map(({ transaction }) => rawOf(transaction));
  expect(heard.filter(({ body }) => waiting.includes(body)).map(({ body }) => body)).toEqual([rawOf(paid)]);
});

test('getzmqnotifications names the address', async () => {
  const answer = await fetch(node.url.replace(/\/\/.*@/, '//'), {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('bursar:simulated').toString('base64')}` },
    body: JSON.stringify({ id: 1, method: 'getzmqnotifications' }),
  });
  expect(((await answer.json()) as { result: unknown }).result).toEqual([
    { type: 'pubhashblock', address: node.publishesAt(), hwm: 1000 },
    { type: 'pubrawtx', address: node.publishesAt(), hwm: 1000 },
  ]);
});
