// The process that scans: fills the service's own watch list and reads one block through the service's own node adapter, again and again.
// Argument: the number of addresses.
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { CURRENCIES } from '../src/core/currency.ts';
import type { BlockFacts, WatchList } from '../src/core/ports.ts';
import { systemClock } from '../src/outside/clock.ts';
import { readBlockBytes } from '../src/outside/utxo/block.ts';
import { createUtxoNode } from '../src/outside/utxo/node/node.ts';
import { createByteSet } from '../src/worker/chain/byte-set.ts';
import { TRANSACTIONS, witnessScript } from './block.ts';
import { median } from './measure.ts';
import type { ScanResult } from './scan.ts';

type Node = { readonly port: number; readonly hash: string; readonly hits: number };

const ROUNDS = 30;
const WARM_UP = 10;
const PAID = 44;

function residentAfterCollection(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss;
}

async function startNode(paid: readonly string[]): Promise<{ node: Node; stop: () => void }> {
  const child = fork(fileURLToPath(new URL('scan-node.ts', import.meta.url)), { execArgv: [] });
  const node = await new Promise<Node>((resolve) => {
    child.once('message', (message) => resolve(message as Node));
    child.send(paid);
  });
  return { node, stop: () => child.disconnect() };
}

async function run(watched: number): Promise<ScanResult> {
  const before = residentAfterCollection();
  const scripts = createByteSet();
  const paid: string[] = [];
  for (let i = 0; i < watched; i++) {
    const script = witnessScript(randomBytes(20));
    scripts.add(script, 0, script.length);
    if (i % Math.floor(watched / PAID) === 0 && paid.length < PAID) paid.push(script.toString('hex'));
  }
  const listBytes = residentAfterCollection() - before;
  const watch: WatchList = {
    hasScript: (bytes, start, end) => scripts.has(bytes, start, end),
    hasOutpoint: () => false,
    fresh: () => Promise.resolve(),
  };
  const { node, stop } = await startNode(paid);
  const chain = createUtxoNode({
    currency: 'BTC',
    url: `http://u:p@127.0.0.1:${node.port}`,
    network: 'regtest',
    clock: systemClock,
  });
  const times: { wallMs: number; cpuMs: number }[] = [];
  let facts: BlockFacts | null = null;
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    facts = await chain.readBlock(node.hash, watch);
    const used = process.cpuUsage(cpu);
    if (round >= WARM_UP) times.push({ wallMs: performance.now() - began, cpuMs: (used.user + used.system) / 1000 });
  }
  const scanMs = await scanOnly(node, watch);
  await chain.close();
  stop();
  if (facts === null || facts.transactionCount !== TRANSACTIONS || facts.touched.length !== node.hits)
    throw new Error('the scan missed something');
  const wallMs = median(times, (one) => one.wallMs).wallMs;
  const cpuMs = median(times, (one) => one.cpuMs).cpuMs;
  return { watched: scripts.size, transactions: TRANSACTIONS, hits: facts.touched.length, wallMs, cpuMs, scanMs, listBytes };
}

/** The bytes alone: hashes, Merkle root and look-ups, without the transfer. */
async function scanOnly(node: Node, watch: WatchList): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${node.port}`, { method: 'POST', body: '{}' })).json()) as {
    result: string;
  };
  const bytes = Buffer.from(answer.result, 'hex');
  const features = CURRENCIES.BTC.utxo?.blockFeatures;
  if (features === undefined) throw new Error('BTC has block features');
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    readBlockBytes(bytes, node.hash, features, watch);
    times.push(performance.now() - began);
  }
  return median(times, (one) => one);
}

const result = await run(Number(process.argv[2]));
process.send?.(result);
process.disconnect();
