// The row of a chain's cursor is the chain's lock: whoever records facts without moving it holds it until they are written.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorMoved, holdCursor, moveCursor, readCursor } from '../../src/store/chain/blocks.ts';
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
