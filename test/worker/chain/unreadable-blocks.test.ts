// A block that a node gives only damaged is asked for again after growing pauses, at once when a caller waits, and is reported meanwhile.
import { expect, test } from 'vitest';
import type { ChainPort } from '../../../src/core/ports.ts';
import { createUnreadableBlocks } from '../../../src/worker/chain/unreadable-blocks.ts';
import { watchedNode } from './watched-node.ts';

const watched = watchedNode();
const damaged = Object.assign(new Error('the block is damaged'), { name: 'NodeTrouble', state: 'bad_answer' });

test('the pauses double to a minute, another block is read at once, and a block that can be read ends them', async () => {
  let nowMs = 0;
  let asked = 0;
  let isDamaged = true;
  const port = {
    ...watched.chain.ctx.ports.chains.get('BTC')!,
    readBlock: async (hash: string) => {
      asked++;
      if (isDamaged && hash === 'bad') throw damaged;
      return { hash };
    },
  } as unknown as ChainPort;
  const patient = createUnreadableBlocks(port, () => nowMs);
  const pauses: number[] = [];
  for (let last = 0; pauses.length < 9; nowMs += 500) {
    const before = asked;
    await expect(patient.port.readBlock('bad', {} as never)).rejects.toBe(damaged);
    if (asked === before) continue;
    pauses.push((nowMs - last) / 1_000);
    last = nowMs;
  }
  expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
  patient.askAgain();
  isDamaged = false;
  expect(await patient.port.readBlock('bad', {} as never)).toEqual({ hash: 'bad' });
});

test('quiet passes leave the node alone and report the trouble, a hurried one asks, and the chain goes on when the block can be read', async () => {
  let asked = 0;
  let isDamaged = true;
  watched.changePort((honest) => ({
    readBlock: async (hash, watch) => {
      asked++;
      if (isDamaged) throw damaged;
      return honest.readBlock(hash, watch);
    },
  }));
  await watched.chain.restart();
  const { height } = watched.node.mine(1);
  const damagedBlock = { state: 'bad_answer', reason: 'the block is damaged' };
  expect(await watched.chain.watcher.pass({ quiet: true })).toMatchObject(damagedBlock);
  for (let i = 0; i < 5; i++) expect(await watched.chain.watcher.pass({ quiet: true })).toMatchObject(damagedBlock);
  expect(asked).toBe(1);
  expect(await watched.chain.watcher.pass()).toMatchObject(damagedBlock);
  expect(asked).toBe(2);
  isDamaged = false;
  expect(await watched.chain.watcher.pass()).toMatchObject({ state: 'ready', height });
});
