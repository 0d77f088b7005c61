// What `bursar chain status` and /readyz report while a chain is far behind: how far, from the first block of the first pass on.
import { expect, test } from 'vitest';
import { moveCursor } from '../../../src/store/chain/blocks.ts';
import { type ChainStatus, readChainStatus } from '../../../src/store/chain/node-conditions.ts';
import { areRead } from '../../../src/store/transactions/due.ts';
import { watchedNode } from './watched-node.ts';

const watched = watchedNode();

async function status(): Promise<Pick<ChainStatus, 'state' | 'reason' | 'nodeHeight' | 'height'>> {
  const { state, reason, nodeHeight, height } = (await readChainStatus(watched.chain.db))[0]!;
  return { state, reason, nodeHeight, height };
}

/** From now on each block that a watcher asks for is preceded by a look at the status. */
async function lookAtEachBlock(blocksPerPass: number): Promise<Awaited<ReturnType<typeof status>>[]> {
  const seen: Awaited<ReturnType<typeof status>>[] = [];
  watched.changePort((port) => ({
    async readBlock(...asked) {
      seen.push(await status());
      return port.readBlock(...asked);
    },
  }));
  await watched.chain.restart({ blocksPerPass });
  return seen;
}

test('a chain that is far behind is reported as such, in the first pass too', async () => {
  const before = await status();
  expect(before).toMatchObject({ state: 'ready', reason: null, nodeHeight: before.height });
  const tip = watched.node.mine(30).height;
  const seen = await lookAtEachBlock(10);
  const sinceMs = Date.now();
  expect(await watched.chain.watcher.pass()).toMatchObject({ blocksRead: 10, more: true });
  expect(seen.map(({ nodeHeight }) => nodeHeight)).toEqual(Array.from({ length: 10 }, () => tip));
  expect(seen[0]).toMatchObject({ state: 'ready', reason: '30 blocks are not read yet' });
  expect(await status()).toMatchObject({ state: 'ready', reason: '20 blocks are not read yet', nodeHeight: tip });
  expect(await areRead(watched.chain.db, [{ currencies: ['BTC'], sinceMs }])).toEqual([false]);
  await watched.chain.catchUp();
  expect(await status()).toEqual({ state: 'ready', reason: null, nodeHeight: tip, height: tip });
});

test('a pass records that the node was looked at: with blocks, with nothing new, and with every block of a long one', async () => {
  const age = async () => (await readChainStatus(watched.chain.db))[0]!.lookedAgoMs;
  const forget = () =>
    watched.chain.db.query({ text: `update node_conditions set looked_at = clock_timestamp() - interval '1 hour'` });
  for (const blocks of [3, 0]) {
    await forget();
    expect(await age()).toBeGreaterThan(3_000_000);
    watched.node.mine(blocks);
    await watched.chain.watcher.pass();
    expect(await age()).toBeLessThan(60_000);
  }
  await forget();
  const { rows } = await watched.chain.db.query<{ height: number; hash: string; epoch: bigint }>({
    text: `select height, hash, epoch from chain_cursors where currency = 'BTC'`,
  });
  const from = rows[0]!;
  const block = { height: from.height + 1, hash: '11'.repeat(32), previousHash: from.hash, timeMs: Date.now() };
  await moveCursor(watched.chain.db, 'BTC', { ...from, caughtUpAtMs: Date.now(), deepHeight: 0 }, block, Date.now());
  expect(await age()).toBeLessThan(60_000);
});

test('a few new blocks are no news', async () => {
  watched.node.mine(3);
  const seen = await lookAtEachBlock(10);
  await watched.chain.catchUp();
  expect(new Set(seen.map(({ reason }) => reason))).toEqual(new Set([null]));
});
