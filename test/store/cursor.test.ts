// The row of a chain's cursor is the chain's lock: whoever records facts without moving it holds it until they are written.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CursorMoved, holdCursor, moveCursor, readCursor } from '../../src/store/blocks.ts';
import { type House, openHouse } from '../support/house.ts';

let house: House;
beforeEach(async () => {
  house = await openHouse();
});
afterEach(() => house.drop());

const hash = (): string => randomBytes(32).toString('hex');

test('while facts are recorded at a cursor nobody moves it, and afterwards it moves', async () => {
  const cursor = (await readCursor(house.db, 'BTC'))!;
  const next = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: house.now() };
  const move = () =>
    house.db.transaction(async (sql) => {
      await sql.query({ text: `set local lock_timeout = '200ms'`, values: [] });
      await moveCursor(sql, 'BTC', cursor, next, house.now());
    });
  await house.db.transaction(async (sql) => {
    await holdCursor(sql, 'BTC', cursor);
    await expect(move()).rejects.toMatchObject({ code: '55P03' });
  });
  await move();
  await expect(house.db.transaction((sql) => holdCursor(sql, 'BTC', cursor))).rejects.toBeInstanceOf(CursorMoved);
});
