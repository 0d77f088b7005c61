// Tables that were made again under sessions that stay open, as `pg_restore --clean` does: the types of their columns are others under the same
// names, and the plans that a session keeps give results of the old ones. The server refuses these, on that session for ever.
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type Database, type Sql } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

const SESSIONS = 6;
let database: Awaited<ReturnType<typeof freshDatabase>>;
let admin: pg.Client;
let db: Database;
beforeEach(async () => {
  database = await freshDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await makeAgain();
  db = connect({ url: database.url, role: 'bursar_app', maxConnections: SESSIONS, applicationName: 'test' });
});
afterEach(async () => {
  await db.close();
  await admin.end();
  await database.drop();
});

const makeAgain = () =>
  admin.query(`begin; drop table if exists restored; drop domain if exists amounts; create domain amounts as numeric check (value >= 0);
    create table restored (id integer primary key, amount amounts not null); insert into restored values (1, 5);
    grant select, insert, update on restored to bursar_app; commit`);
const read = async (sql: Sql) =>
  (await sql.query<{ amount: string }>({ name: 'read_restored', text: 'select amount from restored where id = $1', values: [1] }))
    .rows;
const add = (sql: Sql, id: number) =>
  sql.query({ name: 'add_restored', text: 'insert into restored values ($1, $2) returning amount', values: [id, '7'] });
/** Every session of the pool has planned both. */
const planOnAll = () =>
  Promise.all(
    Array.from({ length: SESSIONS }, (_, n) =>
      db.transaction(async (sql) => {
        await read(sql);
        await add(sql, 10 + n);
        await sql.query({ text: 'select pg_sleep(0.2)' });
      }),
    ),
  );

test('a statement and a transaction run again where the plan of their session is outdated', async () => {
  await planOnAll();
  await makeAgain();
  expect(await read(db)).toEqual([{ amount: '5' }]);
  expect((await add(db, 2)).rows).toEqual([{ amount: '7' }]);
  expect(await db.transaction(read)).toEqual([{ amount: '5' }]);
  expect(await db.transaction(async (sql) => (await add(sql, 3)).rows)).toEqual([{ amount: '7' }]);
  const { rows } = await db.query({ text: 'select id from restored order by id' });
  expect(rows).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
});

test('also where the transaction makes another error of it', async () => {
  await planOnAll();
  await makeAgain();
  const asked = db.transaction((sql) =>
    read(sql).catch((error: Error) => {
      throw new Error('not read', { cause: error });
    }),
  );
  expect(await asked).toEqual([{ amount: '5' }]);
});

test('also where the transaction goes on without what it has not read, of which nothing would be committed', async () => {
  await planOnAll();
  await makeAgain();
  const asked = await db.transaction(async (sql) => {
    const rows = await read(sql).catch(() => null);
    if (rows !== null) await add(sql, 4);
    return rows;
  });
  expect(asked).toEqual([{ amount: '5' }]);
  expect((await db.query({ text: 'select id from restored order by id' })).rows).toEqual([{ id: 1 }, { id: 4 }]);
});

test('all of them at once, where every session of the pool has outdated plans', async () => {
  await planOnAll();
  await makeAgain();
  const asked = Array.from({ length: 3 * SESSIONS }, (_, n) => (n % 2 === 0 ? read(db) : db.transaction(read)));
  expect(await Promise.all(asked)).toEqual(asked.map(() => [{ amount: '5' }]));
});

test('what the server refuses for another reason is refused once, and its session stays', async () => {
  const own = async (): Promise<number> =>
    (await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })).rows[0]!.pid;
  const before = await own();
  await expect(db.query({ text: 'select 1 from nowhere' })).rejects.toMatchObject({ code: '42P01' });
  let times = 0;
  const refused = db.transaction(async (sql) => {
    times++;
    await sql.query({ text: 'select * from restored for update of nothing' });
  });
  await expect(refused).rejects.toMatchObject({ code: '42P01' });
  expect([times, await own()]).toEqual([1, before]);
});

test('a transaction that goes on after a refusal is refused itself: nothing of it is committed', async () => {
  const asked = db.transaction(async (sql) => {
    await add(sql, 20);
    await sql.query({ text: 'select 1 from nowhere' }).catch(() => undefined);
    return 'done';
  });
  await expect(asked).rejects.toMatchObject({ code: '42P01' });
  expect(await db.transaction(async (sql) => (await add(sql, 20)).rows)).toEqual([{ amount: '7' }]);
});
