// What the watcher records of Dash's locks, on the sandbox's node: it locks each transaction and each block at once, unless it is told not to.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

let node: ServedNode;
let chain: WatchedChain;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'DASH', folder: null, now: () => Date.now() });
  chain = await watchChain('DASH', node.url);
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const fault = (name: 'no_locks' | null) => node.setTrouble({ down: false, fault: name, left: null });
async function paid(): Promise<Owed> {
  const owed = await chain.owe();
  node.pay([{ minor: 100_000n, script: owed.script }]);
  await chain.catchUp();
  return owed;
}

describe('the locks of a payment', () => {
  test('are recorded as soon as our node reports them, and the judge is woken', async () => {
    const owed = await paid();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', lock: 'instantsend' }]);
    expect(await chain.takeDue(owed)).toBe(true);
    node.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
    expect(await chain.takeDue(owed)).toBe(true);
    await chain.catchUp();
    expect(await chain.takeDue(owed)).toBe(false);
  });

  test('are none while the quorums are silent, and the block’s when they speak again', async () => {
    fault('no_locks');
    const owed = await paid();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', lock: null }]);
    node.mine(3);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    fault(null);
    node.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
  });

  test('are only what our node says now: after a reorganisation the block’s lock is gone', async () => {
    const owed = await paid();
    node.mine(1);
    await chain.catchUp();
    node.reorg(1, { drop: false });
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', lock: 'instantsend' }]);
  });

  test('do not pass to the rival that takes its inputs', async () => {
    const owed = await paid();
    fault('no_locks');
    node.doubleSpend([...node.state.mempool.values()].map((entry) => entry.transaction));
    await chain.catchUp();
    expect((await chain.facts(owed)).map((fact) => fact.state)).toEqual(['conflicted']);
  });
});
