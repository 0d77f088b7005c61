// A block is recorded only on top of the one before it: also when the node returns, for a moment, a block of another branch at a height,
// and is back on its own branch when it is asked whether its tip is still there.
import { expect, test } from 'vitest';
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
