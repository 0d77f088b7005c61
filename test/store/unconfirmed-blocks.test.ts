// Blocks that pay us by one node's word: what is said of one counts for what was asked, and for nothing that was recorded meanwhile.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertBlocks } from '../../src/store/chain/blocks.ts';
import {
  confirmBlock,
  insertUnconfirmed,
  readUnconfirmed,
  type UnconfirmedBlock,
} from '../../src/store/chain/unconfirmed-blocks.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

const [ONE, OTHER] = ['65766d01', '65766d02'];
const BLOCK = { height: 7, hash: '0xb7', previousHash: '0xb6', timeMs: Date.UTC(2026, 0, 1) };
let db: Database;
let drop: () => Promise<void>;
beforeAll(async () => {
  ({ db, drop } = await freshDatabase());
  await insertBlocks(db, 'ETH', [BLOCK]);
});
afterAll(() => drop?.());

const silent = (...scripts: readonly string[]) =>
  insertUnconfirmed(db, 'ETH', BLOCK, { unconfirmed: { state: 'silent', reason: 'no answer', scripts } }, BLOCK.timeMs);
const left = () => readUnconfirmed(db, 'ETH', { after: -1, limit: 10 });

test('a block of which more was recorded since it was asked about stays unconfirmed', async () => {
  await silent(ONE);
  const [asked] = (await left()) as readonly [UnconfirmedBlock];
  await silent(OTHER);
  await confirmBlock(db, 'ETH', asked);
  const [still] = await left();
  expect(still?.scripts.map((script) => Buffer.from(script).toString('hex'))).toEqual([ONE, OTHER]);
  await confirmBlock(db, 'ETH', still as UnconfirmedBlock);
  expect(await left()).toEqual([]);
});
