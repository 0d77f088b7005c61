// A database that was put back to an earlier state while nothing ran: it shows by itself, or by what was noted outside of it, once; and no
// event that is written then has an identifier that may have been told of another.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../src/flow/context.ts';
import type { EventBody } from '../../src/flow/events/body.ts';
import { listEvents } from '../../src/flow/events/list-events.ts';
import { cursorAt, positionOf } from '../../src/flow/events/stream.ts';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { type DatabaseSeen, databaseNow, settleDatabase } from '../../src/store/postgres/database-home.ts';
import { acknowledgeReplacements, readReplacements } from '../../src/store/postgres/database-replacements.ts';
import { type ApiServer, makeApi } from '../http/api-server.ts';
import { copyDatabase, freshDatabase } from '../support/postgres.ts';

let api: ApiServer;
let merchantId: bigint;
beforeEach(async () => {
  api = await makeApi();
  const [row] = await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]);
  merchantId = BigInt(row.id);
});
afterEach(async () => {
  await api.end();
});

const settle = (seen: DatabaseSeen | null = null, db = api.ctx.db) => settleDatabase(db, 'made here', { seen });
const create = async (): Promise<string> =>
  (await api.call('/create_transaction', { amount: '20.00', crypto_selected: 'BTC' })).json.transaction_id;
const cancel = (transactionId: string, ctx: Context = api.ctx) => cancelTransaction(ctx, { merchantId, transactionId });
const all = { limit: 100, startingAfter: null, object: null, type: null, createdGteMs: null, createdLtMs: null };
const events = async (ctx: Context = api.ctx): Promise<EventBody[]> =>
  (await listEvents(ctx, { ...all, merchantId })).data.toReversed();
const told = async (): Promise<string[]> => (await readReplacements(api.ctx.db, 24)).map(({ evidence }) => evidence);

/** What pg_restore does: the row is written by another transaction than the one that it names. */
async function fillAgain(): Promise<void> {
  const [row] = await api.sql('delete from database_home returning *');
  await api.sql('insert into database_home values ($1, $2, $3, $4, $5, $6)', Object.values(row));
}

/** Writes events with other times, all in one database transaction. */
async function dateEvents(at: string, which = 'true'): Promise<void> {
  await api.sql('alter table events disable trigger append_only');
  await api.sql(`update events set at = ${at} where ${which}`);
  await api.sql('alter table events enable trigger append_only');
}

test('a database that nobody put back says nothing, whatever is written', async () => {
  let { seen, found } = await settle();
  expect(found).toBeNull();
  for (let n = 0; n < 3; n++) {
    await create();
    const now = await databaseNow(api.ctx.db, seen);
    expect(now?.lastEvent?.id).toBe(BigInt(n + 1));
    ({ seen, found } = await settle(n === 1 ? seen : now));
    expect(found).toBeNull();
  }
  expect(await told()).toEqual([]);
  expect((await events()).map(({ sequence }) => sequence)).toEqual([1, 1, 1]);
});

test('while a process runs it is noticed that the database went back, or is another', async () => {
  await create();
  const { seen } = await settle();
  const now = () => databaseNow(api.ctx.db, seen);
  expect(await now()).toMatchObject({ lineage: seen.lineage, raised: 0, lastEvent: { id: 1n } });
  const ahead: Partial<DatabaseSeen>[] = [
    { raised: 1 },
    { log: (seen.log ?? 0n) + (1n << 40n) },
    { lastEvent: { id: 2n, merchantId, mark: '' } },
    { lineage: 'another' },
  ];
  for (const part of ahead) expect(await databaseNow(api.ctx.db, { ...seen, ...part })).toBeNull();
  // what was less before is no sign
  expect(await databaseNow(api.ctx.db, { ...seen, log: null, lastEvent: null })).toMatchObject({ lastEvent: { id: 1n } });
  await api.sql('delete from database_home');
  expect(await now()).toBeNull();
});

test('filled from a dump: told once, and what is written then has other identifiers', async () => {
  const before = await settle();
  const ids = [await create(), await create()] as const;
  const [kept, lost] = ids;
  await fillAgain();
  expect(await databaseNow(api.ctx.db, before.seen)).toBeNull();
  const both = await Promise.all([settle(), settle(before.seen)]);
  expect(both.map(({ found }) => found).filter((one) => one !== null)).toEqual(['it was filled from a dump']);
  expect(await told()).toEqual(['it was filled from a dump']);
  for (const { seen } of both) expect((await settle(seen)).found).toBeNull();
  // nor by whoever noted more of what was lost than of what is there
  expect((await settle({ ...before.seen, lastEvent: { id: 2n, merchantId, mark: 'another' } })).found).toBeNull();

  const listed = await events();
  expect(listed.map(({ id, sequence }) => [id, sequence])).toEqual(ids.map((id) => [`evt_t${id.slice(4)}1`, 1]));
  await cancel(kept);
  const later = await create();
  const [cancelled, created] = (await events()).slice(2);
  expect(cancelled?.sequence).toBeGreaterThan(1_000_000);
  expect(cancelled?.id).toBe(`evt_t${kept.slice(4)}${cancelled?.sequence}`);
  // a transaction that is made later has never been told of
  expect(created).toMatchObject({ id: `evt_t${later.slice(4)}1`, sequence: 1 });
  await cancel(later);
  expect((await events()).at(-1)).toMatchObject({ sequence: 2 });

  // the identifiers that the lost events had, and others that nobody was told, lead to none
  for (const id of [
    `evt_t${kept.slice(4)}2`,
    `evt_t${lost.slice(4)}2`,
    `evt_t${kept.slice(4)}${Number(cancelled?.sequence) - 1}`,
  ])
    await expect(positionOf(api.ctx, merchantId, id)).rejects.toThrow('no such event');
  for (const { id } of await events())
    expect(await cursorAt(api.ctx, merchantId, await positionOf(api.ctx, merchantId, id))).toBe(id);
});

test('filled from a dump of before it was known where it was: told where its events show it, once', async () => {
  for (let n = 0; n < 3; n++) await create();
  // the first one does not lie first
  await dateEvents('at', 'id = 1');
  await dateEvents('at - make_interval(secs => case id when 1 then 121 else 0 end)');
  // all are of one database transaction now, as after a restore
  const copied = await settle();
  expect(copied.found).toBe('it was filled from a dump');
  expect(copied.seen.raised).toBeGreaterThan(0);
  expect((await settle(copied.seen)).found).toBeNull();
});

test('what was never put back, was written to since, or has events of one moment only, says nothing when it is first looked at', async () => {
  await create();
  expect((await settle()).found).toBeNull();
  await create();
  // each was written by itself
  await dateEvents(`at - interval '1 day'`, 'id = 1');
  await api.sql('delete from database_home');
  expect((await settle()).found).toBeNull();
  await dateEvents('now() - make_interval(secs => 60 * id)');
  await api.sql('delete from database_home');
  expect((await settle()).found).toBeNull();
});

test('put back again, to the same dump: higher still, also where the clock was set back meanwhile', async () => {
  const first = await settle();
  const id = await create();
  await fillAgain();
  const second = await settle(first.seen);
  await fillAgain();
  await api.sql('update raised_event_numbers set added = added + 500_000_000');
  const ahead = { ...second.seen, raised: second.seen.raised + 500_000_000 };
  const third = await settle(ahead);
  expect(third.seen.raised).toBeGreaterThanOrEqual(ahead.raised + 1_000_000);
  await cancel(id);
  expect((await events()).at(-1)?.sequence).toBe(third.seen.raised + 2);
});

test('a copy at another place tells where it was', async () => {
  const original = await freshDatabase();
  await settle(null, original.db);
  const copy = await copyDatabase(original.url);
  try {
    expect((await settle(null, copy.db)).found).toMatch(/^database \d+ became \d+$/);
    expect((await settle(null, original.db)).found).toBeNull();
  } finally {
    await copy.drop();
    await original.drop();
  }
});

test('an older copy at the same place: the log went back, the last event is another one, or it was put back before', async () => {
  const id = await create();
  const { seen } = await settle();
  const [event] = await api.sql('select id, merchant_id from events');
  const last = { id: BigInt(event.id), merchantId, mark: 'another' };
  const older: [Partial<DatabaseSeen>, RegExp][] = [
    [{ log: (seen.log ?? 0n) + (1n << 40n) }, /^the log position went back from \d+ to \d+$/],
    [{ lastEvent: last }, /^event another is gone$/],
    [{ lastEvent: { ...last, id: last.id + 1n } }, /^event another is gone$/],
    [{ raised: 900_000_000 }, /^it is from before it was put back the last time$/],
  ];
  for (const [part, evidence] of older) {
    const now = await settle();
    // what was noted of another server says nothing of this one
    if (part.raised === undefined) expect((await settle({ ...now.seen, ...part, database: 'another' })).found).toBeNull();
    expect((await settle({ ...now.seen, ...part })).found).toMatch(evidence);
  }
  await cancel(id);
  expect((await events()).at(-1)?.sequence).toBeGreaterThan(900_000_000);
});

test('files of the server that were made anew are a copy; where it is not known when they were made, nothing is said', async () => {
  const at = (seen: DatabaseSeen | null, filesMade: string | null) =>
    settleDatabase(api.ctx.db, 'made here', { seen, filesMade });
  const { seen } = await at(null, '1');
  expect((await at(seen, '1')).found).toBeNull();
  expect((await at(seen, null)).found).toBeNull();
  expect((await at({ ...seen, filesMade: null }, '2')).found).toBeNull();
  expect((await at(seen, '2')).found).toBe("the server's files are a copy of those that were here");
});

test('a clock that is decades fast raises numbers by no more than they can hold', async () => {
  const other = await freshDatabase();
  try {
    const role = connect({ url: other.url, role: null, maxConnections: 1, applicationName: 'test' });
    const names = await role.query<{ name: string }>({ text: 'select current_database() as name' });
    await role.query({
      text: `create schema fast_clock; grant usage on schema fast_clock to public;
             create function fast_clock.clock_timestamp() returns timestamptz language sql as $$ select timestamptz '2038-03-01' $$;
             alter database "${names.rows[0]?.name}" set search_path = fast_clock, pg_catalog, public`,
    });
    const db = connect({ url: other.url, role: 'bursar_app', maxConnections: 1, applicationName: 'test' });
    const first = await settle(null, db);
    const in2038 = await settle({ ...first.seen, raised: 7 }, db);
    expect(in2038.seen.raised).toBe(Date.UTC(2038, 2, 1) / 1000 - Date.UTC(2020, 0, 1) / 1000);
    await role.query({
      text: `create or replace function fast_clock.clock_timestamp() returns timestamptz language sql as $$ select timestamptz '2150-01-01' $$`,
    });
    const much = { ...in2038.seen, raised: in2038.seen.raised + 5 };
    expect((await settle(much, db)).seen.raised).toBe(much.raised + 1_000_000);
    await db.close();
    await role.close();
  } finally {
    await other.drop();
  }
});

test('one that was put back under processes that live on is told once, by the better evidence, whoever finds it first', async () => {
  const { seen } = await settle();
  const given = (evidence: string) => settleDatabase(api.ctx.db, 'made here', { seen, given: evidence });
  const ahead = { ...seen, lastEvent: { id: 9n, merchantId, mark: 'another' } };
  expect((await given('cluster 1 became 2')).found).toBe('cluster 1 became 2');
  expect((await given('the log position went back')).found).toBeNull();
  expect(await told()).toEqual(['cluster 1 became 2']);
  expect((await settle(ahead)).found).toBe('event another is gone');
  expect(await told()).toEqual(['event another is gone']);
  expect((await given('cluster 1 became 2')).found).toBeNull();
  expect(await told()).toEqual(['event another is gone']);
  // whoever has looked is told what happens next
  await acknowledgeReplacements(api.ctx.db, 'a test');
  expect((await given('cluster 2 became 3')).found).toBe('cluster 2 became 3');
  await api.sql(`update database_replacements set noticed_at = now() - interval '6 minutes'`);
  expect((await given('cluster 3 became 4')).found).toBe('cluster 3 became 4');
  expect((await told()).toSorted()).toEqual(['cluster 2 became 3', 'cluster 3 became 4']);
});

test('a folder of another database is told, and changes no number; a new database beside an old folder is neither', async () => {
  const { seen } = await settle();
  const id = await create();
  const other = await settle({ ...seen, lineage: 'another', lastEvent: { id: 9n, merchantId, mark: 'x' } });
  expect(other.found).toBe('this data folder was used with another database before');
  await cancel(id);
  expect((await events()).map(({ sequence }) => sequence)).toEqual([1, 2]);
  expect(await acknowledgeReplacements(api.ctx.db, 'a test')).toBe(1);
  expect(await told()).toEqual([]);
  await api.sql('delete from database_home');
  // its events are older than any note: it was put back to a state from before this version
  expect((await settle(seen)).found).toBe('it is from before it was known here');
});

test('a new database beside an old folder says nothing', async () => {
  const { seen, found } = await settle({
    lineage: 'old',
    raised: 5,
    cluster: '1',
    database: '2',
    timeline: '3',
    log: 1n << 50n,
    lastEvent: { id: 9n, merchantId, mark: 'x' },
    filesMade: '7',
  });
  expect(found).toBeNull();
  expect(seen).toMatchObject({ lineage: 'made here', raised: 0 });
});
