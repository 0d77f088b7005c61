// A service on a simulated node behind a server that can lie, for the tests of the second reading.
import { afterEach, beforeEach, expect } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { openBursar } from './bursar.ts';
import { type TamperedNode, tamperWith } from './tampered-node.ts';

export let node: ServedNode;
/** Between the node and the service. */
export let proxy: TamperedNode;
export let bursar: Awaited<ReturnType<typeof openBursar>>;
export let worker: ChainWatcher;

/** Registers the hooks; what is exported belongs to the running test. */
export function eachWithReadChain(): void {
  beforeEach(async () => {
    node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
    node.mine(2);
    proxy = await tamperWith(node.url);
    bursar = await openBursar('BTC', `m/84'/1'/0'`, [proxy.url]);
    worker = bursar.worker(200);
    await bursar.settle(worker);
  });
  afterEach(async () => {
    await bursar.close();
    await proxy.stop();
    await node.stop();
  });
}

export async function paid(blocks: number, minor?: bigint): Promise<{ id: string; txid: string; minor: bigint; height: number }> {
  const made = await bursar.owe(50_00n);
  const amount = minor ?? made.amountDue;
  const sent = node.pay([{ minor: amount, script: await bursar.scriptOf(made.transactionId) }]);
  node.mine(1);
  const height = node.state.active.length - 1;
  if (blocks > 1) node.mine(blocks - 1);
  return { id: made.transactionId, txid: sent?.txid as string, minor: amount, height };
}
export async function readOn(): Promise<number> {
  let blocks = 0;
  for (;;) {
    const result = await reconcile(bursar.ctx, 'BTC');
    expect(result.trouble).toBeNull();
    blocks += result.blocksRead;
    if (!result.more) return blocks;
  }
}
export const run = (text: string, values: unknown[] = []) => bursar.ctx.db.query({ text, values });
/** The watchers have never seen it. */
export async function forget(txid: string): Promise<void> {
  await run('delete from payment_inputs where txid = $1', [txid]);
  await run('delete from payments where txid = $1', [txid]);
}
