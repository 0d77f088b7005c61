// The ten minutes of rule 17 count only while our node is synced past the height where the payment was last seen: neither the time below
// that height nor an outage that begins in the very pass that saw it go.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkTransaction } from '../../src/flow/transaction-reads.ts';
import { deleteBlocksAbove, insertBlock, moveCursor, readCursor, setCaughtUp } from '../../src/store/blocks.ts';
import { takeBackAbove } from '../../src/store/chain-facts.ts';
import { recordCondition } from '../../src/store/node-conditions.ts';
import { type House, openHouse } from '../support/house.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
let house: House;
let transactionId: string;
beforeEach(async () => {
  house = await openHouse();
  await house.mine(3);
  ({ transactionId } = await house.create());
  await house.pay(transactionId, 50_000n);
  await house.mine();
  await house.judge();
  expect(await status()).toBe('succeeded');
});
afterEach(() => house.drop());

const hash = (): string => randomBytes(32).toString('hex');
const status = async () => (await checkTransaction(house.ctx, { merchantId: house.merchantId, transactionId })).status;
async function lastCursor() {
  const cursor = await readCursor(house.db, 'BTC');
  if (cursor === null) throw new Error('no cursor');
  return cursor;
}
async function block(): Promise<void> {
  const cursor = await lastCursor();
  const next = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: house.now() };
  await house.db.transaction(async (sql) => {
    await moveCursor(sql, 'BTC', cursor, next, house.now());
    await insertBlock(sql, 'BTC', next);
  });
}
/** The last blocks give way to one empty block; the payment is in no mempool. */
async function loseBlocks(depth: number, atMs = house.now()): Promise<void> {
  const cursor = await lastCursor();
  const height = cursor.height - depth;
  const { rows } = await house.admin.query(`select hash from blocks where currency = 'BTC' and height = $1`, [height]);
  const end = { height: height + 1, hash: hash(), previousHash: rows[0].hash, timeMs: atMs };
  await house.db.transaction(async (sql) => {
    await moveCursor(sql, 'BTC', cursor, end, atMs);
    await deleteBlocksAbove(sql, 'BTC', height);
    await takeBackAbove(sql, 'BTC', { height, oldTip: cursor.height, newTip: end.height, atMs });
    await insertBlock(sql, 'BTC', end);
  });
}
/** Time passes, and nobody has read the chain meanwhile: what the house does at the new time is taken back. */
async function unread(ms: number): Promise<void> {
  const [cursors, payments, nodes] = await Promise.all([
    house.admin.query('select currency, caught_up_at, low_height from chain_cursors'),
    house.admin.query('select id, gone_since from payments'),
    house.admin.query('select currency, outage from node_conditions'),
  ]);
  await house.wait(ms);
  for (const row of cursors.rows)
    await house.admin.query(
      'update chain_cursors set caught_up_at = $2, low_height = $3 where currency = $1',
      Object.values(row),
    );
  for (const row of payments.rows)
    await house.admin.query('update payments set gone_since = $2 where id = $1', Object.values(row));
  for (const row of nodes.rows)
    await house.admin.query('update node_conditions set outage = $2 where currency = $1', Object.values(row));
}
const down = () => recordCondition(house.db, 'BTC', { state: 'down', reason: 'no answer', height: null }, house.now());
const readToTheEnd = async () => {
  await setCaughtUp(house.db, 'BTC', await lastCursor(), house.now());
  await house.judge();
};

test('hours below the height where it was last seen do not count; ten minutes from there on do', async () => {
  await loseBlocks(2);
  await readToTheEnd();
  await house.wait(2 * 60 * MINUTE);
  await house.judge();
  await house.wait(SECOND);
  await block(); // now as high as it was
  await house.judge();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await house.wait(9 * MINUTE);
  await house.judge();
  expect(await status()).toBe('succeeded');
  await house.wait(2 * MINUTE);
  await house.judge();
  expect(await status()).toBe('review');
});

test('nor does the time until a branch that is taken block by block is that high', async () => {
  await loseBlocks(3);
  await unread(30 * MINUTE);
  await block();
  await unread(30 * MINUTE);
  await block();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await house.wait(11 * MINUTE);
  await house.judge();
  expect(await status()).toBe('review');
});

test('an outage does not count, whether it begins in the pass that saw the payment go or after it', async () => {
  await house.wait(SECOND);
  await unread(SECOND);
  await loseBlocks(1);
  await down(); // before the pass has come to its end
  await house.judge();
  await unread(30 * MINUTE);
  await down();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await house.wait(5 * MINUTE);
  await down();
  await unread(30 * MINUTE);
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await house.wait(6 * MINUTE);
  await house.judge();
  expect(await status()).toBe('review');
});

test('nor does the time in which the node had fewer blocks than we have read', async () => {
  await loseBlocks(1);
  await readToTheEnd();
  await recordCondition(
    house.db,
    'BTC',
    { state: 'ready', height: 50, hash: hash(), tipTimeMs: house.now(), peers: 1 },
    house.now(),
    { behind: 'behind what was read' },
  );
  await unread(30 * MINUTE);
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
});
