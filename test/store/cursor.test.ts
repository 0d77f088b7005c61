// The row of a chain's cursor is the chain's lock: whoever records facts without moving it holds it until they are written.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorMoved, holdCursor, moveCursor, readCursor, setCaughtUp } from '../../src/store/chain/blocks.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(() => service.drop());

const hash = (): string => randomBytes(32).toString('hex');

test('while facts are recorded at a cursor nobody moves it, and afterwards it moves', async () => {
  const cursor = (await readCursor(service.db, 'BTC'))!;
  const next = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: service.now() };
  const move = () =>
    service.db.transaction(async (sql) => {
      await sql.query({ text: `set local lock_timeout = '200ms'`, values: [] });
      await moveCursor(sql, 'BTC', cursor, next, service.now());
    });
  await service.db.transaction(async (sql) => {
    await holdCursor(sql, 'BTC', cursor);
    await expect(move()).rejects.toMatchObject({ code: '55P03' });
  });
  await move();
  await expect(service.db.transaction((sql) => holdCursor(sql, 'BTC', cursor))).rejects.toBeInstanceOf(CursorMoved);
});

test('the judge is woken when the chain was read past the time of something, and only then', async () => {
  const told: string[] = [];
  const stop = await service.db.listen(
    ['judge'],
    (_channel, payload) => told.push(payload),
    () => undefined,
  );
  const caughtUp = async (atMs: number) => setCaughtUp(service.db, 'BTC', (await readCursor(service.db, 'BTC'))!, atMs);
  const heard = async (): Promise<string[]> => {
    await service.db.query({ text: `select pg_notify('judge', 'end')` });
    await expect.poll(() => told.at(-1)).toBe('end');
    return told.splice(0).slice(0, -1);
  };
  await service.create(50_00n, 'BTC');
  expect(await caughtUp(service.now() + 60_000)).toBe(true);
  expect(await heard()).toEqual([]);
  expect(await caughtUp(service.now() + 16 * 60_000)).toBe(true);
  expect(await heard()).toEqual(['BTC']);
  const cursor = (await readCursor(service.db, 'BTC'))!;
  expect(await setCaughtUp(service.db, 'BTC', { ...cursor, epoch: cursor.epoch - 1n }, service.now() + 17 * 60_000)).toBe(false);
  expect(await heard()).toEqual([]);
  await stop();
});
