// Blocks are recorded in their order, and only on top of the one before: also when the node returns, for a moment, a block of another branch at
// a height, and is back on its own branch when it is asked whether its tip is still there.
import { expect, test } from 'vitest';
import { readCursor } from '../../../src/store/chain/blocks.ts';
import { watchedNode } from './watched-node.ts';

const watched = watchedNode();

test('a block of another branch is not put on top of ours', async () => {
  const start = (await watched.chain.cursor())!.height;
  watched.node.mine(3);
  const stray = 'f'.repeat(64);
  let given = 0;
  watched.changePort((port) => ({
    hashAt: async (height) => {
      if (height !== start + 2 || given > 0) return port.hashAt(height);
      given++;
      return stray;
    },
    // a block as any other, of a branch that begins elsewhere
    readBlock: async (hash, watch) => {
      if (hash !== stray) return port.readBlock(hash, watch);
      const real = await port.readBlock((await port.hashAt(start + 2)) as string, watch);
      return { ...real, hash: stray, previousHash: 'e'.repeat(64) };
    },
  }));
  await watched.chain.restart();
  const first = await watched.chain.watcher.pass();
  expect([given, first.blocksRead, first.more]).toEqual([1, 1, true]);
  await watched.chain.catchUp();
  const { rows } = await watched.chain.db.query<{ height: number; hash: string; previous: string }>({
    text: `select height, hash, previous from blocks where currency = 'BTC' and height >= $1 order by height`,
    values: [start],
  });
  expect(rows.map((row) => row.height)).toEqual([start, start + 1, start + 2, start + 3]);
  for (const [n, row] of rows.entries()) if (n > 0) expect(row.previous).toBe(rows[n - 1]!.hash);
});

test('blocks that hold nothing of ours are recorded together, each as it is', async () => {
  const cursor = async () => (await readCursor(watched.chain.db, 'BTC'))!;
  const before = await cursor();
  watched.node.mine(120);
  await watched.chain.catchUp();
  const after = await cursor();
  expect(after.height).toBe(before.height + 120);
  expect(Number(after.epoch - before.epoch)).toBeLessThan(30);
  const { rows } = await watched.chain.db.query<{ height: number; hash: string; previous: string }>({
    text: `select height, hash, previous from blocks where currency = 'BTC' and height > $1 order by read_order`,
    values: [before.height],
  });
  expect(rows.map((row) => row.height)).toEqual(Array.from({ length: 120 }, (_, nth) => before.height + 1 + nth));
  for (const [n, row] of rows.entries()) expect(row.previous).toBe(n === 0 ? before.hash : rows[n - 1]!.hash);
});

test('what was read before a block that cannot be read is recorded', async () => {
  const start = (await watched.chain.cursor())!.height;
  watched.node.mine(5);
  watched.changePort((port) => ({
    readBlock: async (hash, watch) => {
      if (hash === (await port.hashAt(start + 4)))
        throw Object.assign(new Error('the block is damaged'), { name: 'NodeTrouble', state: 'bad_answer' });
      return port.readBlock(hash, watch);
    },
  }));
  await watched.chain.restart();
  expect(await watched.chain.watcher.pass()).toMatchObject({ state: 'bad_answer', reason: 'the block is damaged' });
  expect((await watched.chain.cursor())!.height).toBe(start + 3);
});
