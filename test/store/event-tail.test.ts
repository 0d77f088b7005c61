// What streams of events read: numbers and events in their order and within their bounds, who may still commit one, and whose events notify.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  eventNumbersAfter,
  eventsBetween,
  eventWriters,
  lastEventNumber,
  lastEventOf,
  lastNumberUpTo,
  longEventWriters,
  readEvents,
  registerStreams,
  unregisterStreams,
} from '../../src/store/deliveries/event-tail.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { type ApiServer, makeApi } from '../http/api-server.ts';

let api: ApiServer;
let db: Database;
let [shop, other] = [0n, 0n];
beforeAll(async () => {
  api = await makeApi();
  db = api.ctx.db;
  const idOf = async (affiliateId: string) =>
    BigInt((await api.sql('select id from merchants where affiliate_id = $1', [affiliateId]))[0].id);
  [shop, other] = [await idOf(api.affiliateId), await idOf(api.otherAffiliateId)];
});
afterAll(() => api.end());

const COLUMNS = 'merchant_id, object_id, sequence, type, status, reason, at';
const event = (merchantId: bigint, sequence: number) =>
  `${merchantId}, 'txn_${sequence}', ${sequence}, 'transaction.started', 'started', 'a test', now()`;
const ids = (rows: readonly { readonly id: bigint }[]): bigint[] => rows.map(({ id }) => id);

test('the highest number is the last that was drawn, committed or not', async () => {
  expect(await lastEventNumber(db)).toBe(0n);
  await db.query({ text: `insert into events (${COLUMNS}) values (${event(shop, 1)})` });
  expect(await lastEventNumber(db)).toBe(1n);
  const rolledBack = db.transaction(async (sql) => {
    await sql.query({ text: `insert into events (${COLUMNS}) values (${event(shop, 2)})` });
    throw new Error('no');
  });
  await expect(rolledBack).rejects.toThrow('no');
  expect(await lastEventNumber(db)).toBe(2n);
});

test('numbers and events come in order, from one bound to the other, however their rows lie', async () => {
  for (const [id, merchantId] of [
    [140, shop],
    [130, shop],
    [120, other],
    [110, shop],
  ] as const)
    await db.query({
      text: `insert into events (id, ${COLUMNS}) overriding system value values (${id}, ${event(merchantId, id)})`,
    });
  expect(ids(await eventNumbersAfter(db, 110n, 9))).toEqual([120n, 130n, 140n]);
  expect(ids(await eventNumbersAfter(db, 110n, 2))).toEqual([120n, 130n]);
  expect(await lastNumberUpTo(db, 130n)).toMatchObject({ id: 130n, merchantId: shop });
  expect(await lastNumberUpTo(db, 129n)).toMatchObject({ id: 120n, merchantId: other });
  expect(await lastNumberUpTo(db, 0n)).toBeNull();
  expect(ids(await readEvents(db, [130n, 110n, 999n]))).toEqual([110n, 130n]);
  const between = async (after: bigint, to: bigint, limit = 9) =>
    ids(await eventsBetween(db, { merchantId: shop, after, to, limit }));
  expect(await between(110n, 140n)).toEqual([130n, 140n]);
  expect(await between(109n, 130n)).toEqual([110n, 130n]);
  expect(await between(1n, 140n, 1)).toEqual([110n]);
  expect(await lastEventOf(db, shop, 130n)).toEqual({ objectId: 'txn_130', sequence: 130 });
  expect(await lastEventOf(db, shop, 129n)).toEqual({ objectId: 'txn_110', sequence: 110 });
  expect(await lastEventOf(db, shop, 0n)).toBeNull();
});

test('who writes events and has not ended is known, with its program and since when', async () => {
  expect(await eventWriters(db)).toEqual([]);
  const [written, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const over = db.transaction(async (sql) => {
    await sql.query({ text: `insert into events (${COLUMNS}) values (${event(shop, 3)})` });
    written.resolve();
    await ended.promise;
  });
  await written.promise;
  expect(await eventWriters(db)).toHaveLength(1);
  const { rows } = await db.query<{ program: string; now: Date }>({
    text: `select current_setting('application_name') as program, clock_timestamp() as now`,
  });
  const [{ program, now } = { program: '', now: new Date(0) }] = rows;
  const [writer, ...more] = await longEventWriters(db, { longerThanMs: -60_000, limit: 9 });
  expect([writer?.program, typeof writer?.pid, more]).toEqual([program, 'number', []]);
  expect(program).not.toBe('');
  expect(Math.abs((writer?.sinceMs ?? 0) - now.getTime())).toBeLessThan(60_000);
  expect(await longEventWriters(db, { longerThanMs: 60_000, limit: 9 })).toEqual([]);
  ended.resolve();
  await over;
  expect(await eventWriters(db)).toEqual([]);
});

test('a process registers the merchants whose events notify it, deletes what a dead one has left, and ends only its own', async () => {
  const add = (process: string, merchantId: bigint, until: string) =>
    api.sql(`insert into event_streams values ($1, $2, now() + $3::interval)`, [merchantId, process, until]);
  const rows = () =>
    api.sql('select process, merchant_id, until > now() as lives from event_streams order by process, merchant_id');
  await add('dead', shop, '-1 s');
  await add('alive', shop, '1 hour');
  await add('here', shop, '-1 s');
  await registerStreams(db, 'here', [other, shop], 600);
  const [alive, mine, second] = [
    { process: 'alive', merchant_id: String(shop), lives: true },
    { process: 'here', merchant_id: String(shop), lives: true },
    { process: 'here', merchant_id: String(other), lives: true },
  ];
  const text = (list: readonly unknown[]) =>
    list.map((one) => JSON.stringify(one, (_key, value) => (typeof value === 'bigint' ? String(value) : value))).sort();
  expect(text(await rows())).toEqual(text([alive, mine, second]));
  await unregisterStreams(db, 'here', [other]);
  expect(text(await rows())).toEqual(text([alive, mine]));
});
