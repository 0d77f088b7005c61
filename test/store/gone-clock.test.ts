// The ten minutes of rule 17 count only while our node is synced past the height where the payment was last seen: neither the time below
// that height nor an outage that begins in the very pass that saw it go.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkTransaction } from '../../src/flow/transactions/reads.ts';
import { deleteBlocksAbove, insertBlocks, moveCursor, readCursor, setCaughtUp } from '../../src/store/chain/blocks.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { takeBackAbove } from '../../src/store/chain/sightings.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
let service: ServiceOnDatabase;
let transactionId: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  await service.mine(3);
  ({ transactionId } = await service.create());
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  expect(await status()).toBe('succeeded');
});
afterEach(() => service.drop());

const hash = (): string => randomBytes(32).toString('hex');
const status = async () => (await checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId })).status;
async function lastCursor() {
  const cursor = await readCursor(service.db, 'BTC');
  if (cursor === null) throw new Error('no cursor');
  return cursor;
}
async function block(): Promise<void> {
  const cursor = await lastCursor();
  const next = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: service.now() };
  await service.db.transaction(async (sql) => {
    await moveCursor(sql, 'BTC', cursor, next, service.now());
    await insertBlocks(sql, 'BTC', [next]);
  });
}
/** The last blocks give way to one empty block; the payment is in no mempool. */
async function loseBlocks(depth: number, atMs = service.now()): Promise<void> {
  const cursor = await lastCursor();
  const height = cursor.height - depth;
  const { rows } = await service.admin.query(`select hash from blocks where currency = 'BTC' and height = $1`, [height]);
  const end = { height: height + 1, hash: hash(), previousHash: rows[0].hash, timeMs: atMs };
  await service.db.transaction(async (sql) => {
    await moveCursor(sql, 'BTC', cursor, end, atMs);
    await deleteBlocksAbove(sql, 'BTC', height);
    await takeBackAbove(sql, 'BTC', { height, oldTip: cursor.height, newTip: end.height, atMs });
    await insertBlocks(sql, 'BTC', [end]);
  });
}
/** Time passes, and nobody has read the chain meanwhile: what the service does at the new time is taken back. */
async function unread(ms: number): Promise<void> {
  const [cursors, payments, nodes] = await Promise.all([
    service.admin.query('select currency, caught_up_at, low_height from chain_cursors'),
    service.admin.query('select id, gone_since from payments'),
    service.admin.query('select currency, outage from node_conditions'),
  ]);
  await service.wait(ms);
  for (const row of cursors.rows)
    await service.admin.query(
      'update chain_cursors set caught_up_at = $2, low_height = $3 where currency = $1',
      Object.values(row),
    );
  for (const row of payments.rows)
    await service.admin.query('update payments set gone_since = $2 where id = $1', Object.values(row));
  for (const row of nodes.rows)
    await service.admin.query('update node_conditions set outage = $2 where currency = $1', Object.values(row));
}
const down = () => recordCondition(service.db, 'BTC', { state: 'down', reason: 'no answer', height: null }, service.now());
const readToTheEnd = async () => {
  await setCaughtUp(service.db, 'BTC', await lastCursor(), service.now());
  await service.judge();
};

test('hours below the height where it was last seen do not count; ten minutes from there on do', async () => {
  await loseBlocks(2);
  await readToTheEnd();
  await service.wait(2 * 60 * MINUTE);
  await service.judge();
  await service.wait(SECOND);
  await block(); // now as high as it was
  await service.judge();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await service.wait(9 * MINUTE);
  await service.judge();
  expect(await status()).toBe('succeeded');
  await service.wait(2 * MINUTE);
  await service.judge();
  expect(await status()).toBe('review');
});

test('the time until a branch that is taken block by block is that high does not count either', async () => {
  await loseBlocks(3);
  await unread(30 * MINUTE);
  await block();
  await unread(30 * MINUTE);
  await block();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await service.wait(11 * MINUTE);
  await service.judge();
  expect(await status()).toBe('review');
});

test('an outage does not count, whether it begins in the pass that saw the payment go or after it', async () => {
  await service.wait(SECOND);
  await unread(SECOND);
  await loseBlocks(1);
  await down(); // before the pass has come to its end
  await service.judge();
  await unread(30 * MINUTE);
  await down();
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await service.wait(5 * MINUTE);
  await down();
  await unread(30 * MINUTE);
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
  await service.wait(6 * MINUTE);
  await service.judge();
  expect(await status()).toBe('review');
});

test('the time in which the node had fewer blocks than we have read does not count either', async () => {
  await loseBlocks(1);
  await readToTheEnd();
  await recordCondition(
    service.db,
    'BTC',
    { state: 'ready', height: 50, hash: hash(), tipTimeMs: service.now(), peers: 1 },
    service.now(),
    { behind: 'behind what was read' },
  );
  await unread(30 * MINUTE);
  await readToTheEnd();
  expect(await status()).toBe('succeeded');
});
