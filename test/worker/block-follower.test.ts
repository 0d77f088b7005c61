// A block is recorded only on top of the one before it: also when the node returns, for a moment, a block of another branch at a height,
// and is back on its own branch when it is asked whether its tip is still there.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import type { ChainPort } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { type WatchedChain, watchChain } from '../nodes/watched-chain.ts';

let node: ServedNode;
let chain: WatchedChain;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  chain = await watchChain('BTC', node.url);
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

test('a block of another branch is not put on top of ours', async () => {
  const start = (await chain.cursor())!.height;
  node.mine(3);
  const ports = chain.ctx.ports.chains as Map<UtxoCode, ChainPort>;
  const port = ports.get('BTC')!;
  const stray = 'f'.repeat(64);
  let told = 0;
  ports.set('BTC', {
    ...port,
    hashAt: async (height) => {
      if (height !== start + 2 || told > 0) return port.hashAt(height);
      told++;
      return stray;
    },
    // a block as any other, of a branch that begins elsewhere
    readBlock: async (hash, watch) => {
      if (hash !== stray) return port.readBlock(hash, watch);
      const real = await port.readBlock((await port.hashAt(start + 2)) as string, watch);
      return { ...real, hash: stray, previousHash: 'e'.repeat(64) };
    },
  });
  await chain.restart();
  const first = await chain.watcher.pass();
  expect([told, first.blocksRead, first.more]).toEqual([1, 1, true]);
  await chain.catchUp();
  const { rows } = await chain.db.query<{ height: number; hash: string; previous: string }>({
    text: `select height, hash, previous from blocks where currency = 'BTC' and height >= $1 order by height`,
    values: [start],
  });
  expect(rows.map((row) => row.height)).toEqual([start, start + 1, start + 2, start + 3]);
  for (const [n, row] of rows.entries()) if (n > 0) expect(row.previous).toBe(rows[n - 1]!.hash);
});
