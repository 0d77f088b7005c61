// Statements of a transaction that are begun without waiting for each other go to the server together, and fail together: with the error of the
// first that failed, and nothing of them stays.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type Database, type Sql } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openRelay } from '../support/relay.ts';
import { eventually } from '../support/service.ts';

let database: Awaited<ReturnType<typeof freshDatabase>>;
let relay: Awaited<ReturnType<typeof openRelay>>;
let alter = (bytes: Buffer): Buffer => bytes;
const opened: Database[] = [];

function open(options: { readonly answersWithinMs?: number } = {}): Database {
  const db = connect({ url: relay.url, role: null, maxConnections: 2, applicationName: 'test', ...options });
  opened.push(db);
  return db;
}
beforeEach(async () => {
  database = await freshDatabase();
  alter = (bytes) => bytes;
  relay = await openRelay(database.url, (bytes) => alter(bytes));
  await open().query({ text: 'create table written (id integer)' });
});
afterEach(async () => {
  relay.close();
  for (const db of opened.splice(0)) await db.close();
  await database.drop();
});

const insert = (sql: Sql, id: number) => sql.query({ name: 'insert', text: 'insert into written values ($1)', values: [id] });
const written = async (): Promise<number[]> => {
  const direct = connect({ url: database.url, role: null, maxConnections: 1, applicationName: 'test' });
  const { rows } = await direct.query<{ id: number }>({ text: 'select id from written order by id' });
  await direct.close();
  return rows.map(({ id }) => id);
};
/** As a function does that has more to do with its answer than others. */
async function later<T>(work: Promise<T>): Promise<T> {
  try {
    const done = await work;
    for (let n = 0; n < 20; n++) await Promise.resolve();
    return done;
  } catch (error) {
    for (let n = 0; n < 20; n++) await Promise.resolve();
    throw error;
  }
}
const division = { text: 'select 1 / 0' };

test('the server runs them in their order without a word from us in between', async () => {
  const db = open();
  const holder = connect({ url: database.url, role: null, maxConnections: 1, applicationName: 'test' });
  const locked = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const held = holder.transaction(async (sql) => {
    await sql.query({ text: 'select pg_advisory_xact_lock(7)' });
    locked.resolve();
    await free.promise;
  });
  await locked.promise;
  const running = db.transaction(async (sql) => {
    await sql.query({ text: 'select' });
    const lock = (key: number) => sql.query({ text: 'select pg_advisory_xact_lock($1::int)', values: [key] });
    return Promise.all([lock(7), lock(8), sql.query<{ n: number }>({ text: 'select 1 as n' })]);
  });
  const locks = (key: number, granted: boolean) => async () => {
    const text = `select from pg_locks where locktype = 'advisory' and objid = $1 and granted = $2 and database = (select oid from pg_database where datname = current_database())`;
    const { rowCount } = await database.db.query({ text, values: [key, granted] });
    return rowCount === 1 ? true : null;
  };
  await eventually('the first waits', locks(7, false));
  relay.freeze();
  free.resolve();
  await held;
  await eventually('the second has run', locks(8, true));
  relay.thaw();
  expect((await running)[2].rows).toEqual([{ n: 1 }]);
  await holder.close();
});

test('the transaction fails with the first that failed, whichever is told first, and nothing of the others stays', async () => {
  const failing = open().transaction(async (sql) => {
    await Promise.all([insert(sql, 1), later(sql.query(division)), insert(sql, 2)]);
  });
  await expect(failing).rejects.toMatchObject({ code: '22012' });
  expect(await written()).toEqual([]);
});

test('that one was refused which another was to parse is not why a transaction fails', async () => {
  const failing = open().transaction((sql) => Promise.all([later(sql.query(division)), later(insert(sql, 1)), insert(sql, 2)]));
  await expect(failing).rejects.toMatchObject({ code: '22012' });
  expect(await written()).toEqual([]);
});

test('what may be run again is run again, also where others failed because of it', async () => {
  const db = open();
  await db.query({
    text: `create function conflict() returns void language plpgsql as $$ begin raise 'conflict' using errcode = '40001'; end $$`,
  });
  let runs = 0;
  await db.transaction(async (sql) => {
    runs++;
    const text = runs === 1 ? 'select conflict()' : 'select 1';
    await Promise.all([later(sql.query({ text })), insert(sql, runs)]);
  });
  expect([runs, await written()]).toEqual([2, [2]]);
});

test('what was taken back to a savepoint is not why a transaction fails', async () => {
  const failing = open().transaction(async (sql) => {
    await sql.query({ text: 'savepoint before' });
    await sql.query({ text: 'select 1 / 0' }).catch(() => sql.query({ text: 'rollback to savepoint before' }));
    await Promise.all([later(sql.query({ text: 'select sqrt(-1)' })), insert(sql, 1)]);
  });
  await expect(failing).rejects.toMatchObject({ code: '2201F' });
  expect(await written()).toEqual([]);
});

/** As an operation does that shares a transaction with the one before it (flow/context). */
async function behindSavepoint(sql: Sql, work: () => Promise<unknown>): Promise<void> {
  await sql.query({ text: 'savepoint before' });
  try {
    await work();
  } catch (error) {
    await sql.query({ text: 'rollback to savepoint before' });
    throw error;
  }
}

test('nor does taking back to a savepoint hide what failed first: what may be run again is run again', async () => {
  const db = open();
  const failing = db.transaction((sql) => behindSavepoint(sql, () => Promise.all([later(sql.query(division)), insert(sql, 1)])));
  await expect(failing).rejects.toMatchObject({ code: '22012' });
  await db.query({
    text: `create function conflict() returns void language plpgsql as $$ begin raise 'conflict' using errcode = '40001'; end $$`,
  });
  let runs = 0;
  await db.transaction(async (sql) => {
    runs++;
    const text = runs === 1 ? 'select conflict()' : 'select 1';
    await behindSavepoint(sql, () => Promise.all([later(sql.query({ text })), insert(sql, runs)]));
  });
  expect([runs, await written()]).toEqual([2, [2]]);
});

test('whoever goes on after another has failed writes nothing: the transaction is over', async () => {
  const ended = Promise.withResolvers<void>();
  let onward: Promise<unknown> | undefined;
  const failing = open().transaction(async (sql) => {
    async function goesOn(): Promise<void> {
      await insert(sql, 1);
      await ended.promise;
      onward = insert(sql, 2);
      await onward;
    }
    await Promise.all([goesOn(), sql.query(division)]);
  });
  await expect(failing).rejects.toMatchObject({ code: '22012' });
  ended.resolve();
  await eventually('it has gone on', async () => onward ?? null).catch(() => undefined);
  await expect(onward).rejects.toThrow('the database transaction is over');
  expect(await written()).toEqual([]);
});

test.each([true, false])('where "begin" fails nothing is written (reads first: %s)', async (readsFirst) => {
  const db = open();
  let alone = true;
  alter = (bytes) => Buffer.from(bytes.toString('latin1').replace('begin\0', 'begxn\0'), 'latin1');
  const failing = db.transaction(
    async (sql) => {
      if (readsFirst) await sql.query({ text: 'select 1' });
      alone = false;
      await insert(sql, 1);
    },
    { readsFirst },
  );
  await expect(failing).rejects.toMatchObject({ code: '42601' });
  expect([alone, await written()]).toEqual([true, []]);
});

test('each has the time that one may take, and all fail when the server falls silent', async () => {
  const db = open({ answersWithinMs: 1_500 });
  const sleep = (sql: Sql, seconds: number) => sql.query({ text: 'select pg_sleep($1)', values: [seconds] });
  await db.transaction(async (sql) => {
    await Promise.all([sleep(sql, 0.8), sleep(sql, 0.8), sleep(sql, 0.8), insert(sql, 1)]);
  });
  expect(await written()).toEqual([1]);
  const settled = db.transaction(async (sql) => {
    await sql.query({ text: 'select' });
    relay.freeze();
    return Promise.allSettled([insert(sql, 2), insert(sql, 3)]).then((all) => {
      expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      throw new Error('both have failed');
    });
  });
  await expect(settled).rejects.toThrow('both have failed');
  relay.thaw();
  expect(await written()).toEqual([1]);
});
