// How many sessions of PostgreSQL a process holds: one for all its locks, one for all that it listens to, and a pool that gives back unused
// ones; and what happens to locks and listeners when their session breaks.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openRelay } from '../support/relay.ts';
import { eventually } from '../support/service.ts';

let database: Awaited<ReturnType<typeof freshDatabase>>;
const opened: Database[] = [];

/** What one process has: the sessions are told apart by the name. */
function processOf(name: string): Database {
  const db = connect({ url: database.url, role: 'bursar_app', maxConnections: 6, applicationName: name });
  opened.push(db);
  return db;
}

beforeEach(async () => {
  database = await freshDatabase();
});
afterEach(async () => {
  for (const db of opened.splice(0)) await db.close();
  await database.drop();
});

async function sessionsOf(name: string): Promise<number> {
  const text = 'select count(*)::int as n from pg_stat_activity where application_name = $1';
  return (await database.db.query<{ n: number }>({ text, values: [name] })).rows[0]!.n;
}

async function breakSessionsOf(name: string): Promise<void> {
  const text = 'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1';
  const superuser = connect({ url: database.url, role: null, maxConnections: 1, applicationName: 'test operator' });
  await superuser.query({ text, values: [name] });
  await superuser.close();
}

test('all locks of a process are held by one session, which ends with the last of them', async () => {
  const db = processOf('one');
  const names = ['chain-watcher BTC', 'chain-watcher LTC', 'chain-watcher DOGE'];
  const locks = names.map((name) => db.sessionLock(name));
  expect(await Promise.all(locks.map((lock) => lock.acquire()))).toEqual([true, true, true]);
  expect(await sessionsOf('one')).toBe(1);
  const other = processOf('other');
  const theirs = names.map((name) => other.sessionLock(name));
  expect(await Promise.all(theirs.map((lock) => lock.acquire()))).toEqual([false, false, false]);
  await locks[0]!.release();
  expect(await theirs[0]!.acquire()).toBe(true);
  expect(await theirs[1]!.acquire()).toBe(false);
  for (const lock of locks) await lock.release();
  expect(await Promise.all(theirs.map((lock) => lock.acquire()))).toEqual([true, true, true]);
  await eventually('the session has ended', async () => ((await sessionsOf('one')) === 0 ? true : null));
  for (const lock of theirs) await lock.release();
});

test('two who want the same lock in one process are as much apart as in two', async () => {
  const db = processOf('one');
  const [first, second] = [db.sessionLock('x'), db.sessionLock('x')];
  expect(await Promise.all([first.acquire(), second.acquire()])).toEqual([true, false]);
  expect(await second.share()).toBe(false);
  expect(await first.share()).toBe(true);
  await first.yield();
  expect(await second.share()).toBe(true);
  expect(await first.acquire()).toBe(false);
  await second.release();
  expect(await first.acquire()).toBe(true);
  await first.release();
  expect(await second.acquire()).toBe(true);
  await second.release();
});

test('a session that breaks loses all its locks, and every holder is notified', async () => {
  const db = processOf('one');
  const lost: string[] = [];
  const locks = ['a', 'b', 'c'].map((name) => db.sessionLock(name, () => lost.push(name)));
  await locks[0]!.acquire();
  await locks[1]!.share();
  const other = processOf('other').sessionLock('a');
  expect(await other.acquire()).toBe(false);
  await breakSessionsOf('one');
  await eventually('all are notified', async () => (lost.length === 2 ? true : null));
  expect(lost.sort()).toEqual(['a', 'b']);
  // the server lets go of a dead session's locks a moment after its client has noticed
  await eventually('another process has the lock', async () => ((await other.acquire()) ? true : null));
  // what was lost is asked for again, not believed
  expect(await locks[0]!.acquire()).toBe(false);
  expect(await locks[1]!.share()).toBe(true);
  await other.release();
  for (const lock of locks) await lock.release();
});

test('everything that a process listens to comes on one session; when it breaks, every listener is notified and listens again', async () => {
  const db = processOf('one');
  const received: string[] = [];
  const lost: string[] = [];
  const receive = (who: string) => (channel: string, payload: string) => void received.push(`${who} ${channel} ${payload}`);
  const stops = [
    await db.listen(['hurry', 'judge'], receive('first'), () => lost.push('first')),
    await db.listen(['judge'], receive('second'), () => lost.push('second')),
  ];
  expect(await sessionsOf('one')).toBe(1);
  const notify = (channel: string, payload: string) =>
    database.db.query({ text: 'select pg_notify($1, $2)', values: [channel, payload] });
  const hasReceived = (count: number) => eventually(`${count} messages`, async () => (received.length >= count ? true : null));
  await notify('hurry', '1');
  await notify('judge', '2');
  await hasReceived(3);
  expect(received.sort()).toEqual(['first hurry 1', 'first judge 2', 'second judge 2']);
  await breakSessionsOf('one');
  await eventually('notified when it broke and when it is back', async () => (lost.length >= 4 ? true : null));
  expect(lost.sort()).toEqual(['first', 'first', 'second', 'second']);
  await stops[0]!();
  received.length = 0;
  await notify('hurry', '3');
  await notify('judge', '4');
  await hasReceived(1);
  expect(received).toEqual(['second judge 4']);
  await stops[1]!();
  await eventually('the session has ended', async () => ((await sessionsOf('one')) === 0 ? true : null));
  expect(lost).toHaveLength(4);
});

test('a session that hears nothing any more, and is told of no end, is replaced, and every listener is notified', async () => {
  const relay = await openRelay(database.url);
  const db = connect({ url: relay.url, role: 'bursar_app', maxConnections: 1, applicationName: 'one', silentMs: 300 });
  opened.push(db);
  const received: string[] = [];
  let lost = 0;
  const stop = await db.listen(
    ['hurry'],
    (_channel, payload) => received.push(payload),
    () => (lost += 1),
  );
  const notify = (payload: string) => database.db.query({ text: `select pg_notify('hurry', $1)`, values: [payload] });
  await notify('1');
  await eventually('heard', () => received.includes('1'));
  relay.forget();
  await notify('2');
  await eventually('notified when it was given up and when it is back', () => lost === 2);
  await notify('3');
  await eventually('it hears again', () => received.includes('3'));
  await stop();
  relay.close();
});

test('a reading of much may take longer than the pool allows, and is given up by its own limit', async () => {
  const relay = await openRelay(database.url);
  const db = connect({ url: relay.url, role: 'bursar_app', maxConnections: 1, applicationName: 'one', answersWithinMs: 300 });
  opened.push(db);
  const slow = { text: 'select pg_sleep(0.6)' };
  await expect(db.transaction((sql) => sql.query(slow))).rejects.toThrow('statement timeout');
  await db.transaction((sql) => sql.query(slow), { statementMs: 1_000 });
  await expect(db.transaction((sql) => sql.query({ text: 'select pg_sleep(60)' }), { statementMs: 500 })).rejects.toThrow(
    'statement timeout',
  );
  const reading = db.transaction(
    async (sql) => {
      await sql.query({ text: 'select 1' });
      relay.forget();
      await sql.query({ text: 'select 1' });
    },
    { statementMs: 500 },
  );
  await expect(reading).rejects.toThrow('Connection terminated');
  relay.close();
});

test('a new session that is forgotten while it is asked which database it leads to is given up, and the next one is there', async () => {
  let asked = 0;
  const relay = await openRelay(database.url, (bytes) => {
    if (bytes.includes('pg_control_system') && ++asked === 1) relay.forget();
    return bytes;
  });
  const limits = { answersWithinMs: 1_000, checksIdentity: true };
  const db = connect({ url: relay.url, role: 'bursar_app', maxConnections: 1, applicationName: 'one', ...limits });
  opened.push(db);
  await expect(db.query({ text: 'select 1' })).rejects.toThrow(/terminated|timeout/);
  expect((await db.query({ text: 'select 1' })).rowCount).toBe(1);
  relay.close();
});

test('the pool gives back what it does not use', async () => {
  const db = processOf('one');
  await Promise.all(Array.from({ length: 6 }, () => db.query({ text: 'select pg_sleep(0.05)' })));
  expect(await sessionsOf('one')).toBe(6);
  await eventually('given back', async () => ((await sessionsOf('one')) === 0 ? true : null));
}, 30_000);
