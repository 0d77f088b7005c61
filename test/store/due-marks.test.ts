// Whose transactions are marked due, and who is woken, when the chain or the mempool takes payments away.
import { once } from 'node:events';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCursor } from '../../src/store/chain/blocks.ts';
import { takeBackAbove, wakeJudge } from '../../src/store/chain/sightings.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterAll(() => service.drop());

async function isMarked(id: string): Promise<boolean> {
  const { rowCount } = await service.admin.query('delete from due_marks where transaction_id = $1', [id]);
  return (rowCount ?? 0) > 0;
}
/** A transaction with a payment in a block with so many others on it, and no mark. */
async function mined(above: number): Promise<string> {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 5n);
  await service.mine(1 + above);
  await isMarked(transactionId);
  return transactionId;
}
/** The tip changes, above so many blocks below it. */
async function takeBack(blocks: number, shorterBy: number): Promise<void> {
  const { height: oldTip } = (await readCursor(service.db, 'BTC')) as { height: number };
  const options = { height: oldTip - blocks, oldTip, newTip: oldTip - shorterBy, atMs: service.now() };
  await service.db.transaction((sql) => takeBackAbove(sql, 'BTC', options));
}

test('what leaves the mempool is marked due', async () => {
  const { transactionId } = await service.create();
  const sent = await service.pay(transactionId, 5n);
  expect(await isMarked(transactionId)).toBe(true);
  await service.evict(sent);
  expect(await isMarked(transactionId)).toBe(true);
});

test('a reorganisation marks what it removes, and not what lies below', async () => {
  const [below, above] = [await mined(0), await mined(0)];
  await takeBack(1, 0);
  expect([await isMarked(below), await isMarked(above)]).toEqual([false, true]);
});

test('where the chain got shorter what lies below has fewer confirmations, and is marked too', async () => {
  const below = await mined(3);
  await takeBack(1, 1);
  expect(await isMarked(below)).toBe(true);
});

test('a double spend that has left the mempool is forgotten, one in a block is not', async () => {
  const { transactionId } = await service.create();
  const sent = await service.pay(transactionId, 5n);
  const [left, inBlock] = ['left', 'in a block'];
  await service.admin.query(
    `insert into conflicting_transactions (currency, txid, height) values ('BTC', $1, null), ('BTC', $2, 7)`,
    [left, inBlock],
  );
  await service.admin.query(`update payments set state = 'conflicted', conflict_txid = $2 where txid = $1`, [
    sent.facts.txid,
    left,
  ]);
  await service.evict(sent);
  const { rows } = await service.admin.query('select txid from conflicting_transactions where txid = any ($1)', [
    [left, inBlock],
  ]);
  expect(rows).toEqual([{ txid: inBlock }]);
});

test('the judge is woken by the currency', async () => {
  const listener = new pg.Client({ connectionString: service.url });
  await listener.connect();
  await listener.query('listen judge');
  const heard = once(listener, 'notification');
  await wakeJudge(service.db, 'BTC');
  expect((await heard)[0]).toMatchObject({ channel: 'judge', payload: 'BTC' });
  await listener.end();
});
