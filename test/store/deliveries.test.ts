// What is written of attempts to deliver an event, also when it is written twice or somebody asks for the event meanwhile; and what is forgotten.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  type Attempt,
  dueDeliveries,
  pruneAttempts,
  recallDeliveries,
  waitingWebhooks,
  writeAttempts,
} from '../../src/store/deliveries/deliveries.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  await sql(
    `with one as (
       insert into merchants (affiliate_id, email, business_name, created_at) values ('aff_1', 'a@example.com', 'A', now()) returning id)
     insert into webhooks (number, id, merchant_id, url, secret, created_at) overriding system value
       select n, 'wh_' || n, id, 'http://127.0.0.1:1/', 'whsec_AAAA', now() from one, generate_series(1, 30) n`,
  );
});
afterAll(() => database.drop());
const AT = Date.UTC(2026, 5, 1);
const sql = async (text: string) => (await database.db.query({ text })).rows;
beforeEach(async () => {
  await sql('delete from deliveries');
  await sql('delete from delivery_attempts');
});

const failed: Attempt = {
  webhook: 7n,
  eventId: 70n,
  atMs: AT,
  tookMs: 12,
  status: 500,
  error: null,
  answer: Buffer.from('no'),
  failures: 0,
  asked: 0,
  isDelivered: false,
  againAtMs: AT + 5_000,
  disables: false,
};
const waits = (failures = 0, asked = 0) => sql(`insert into deliveries values (7, 70, '-infinity', ${failures}, ${asked})`);
const left = () => sql('select failures, due_at from deliveries');

test('a failure counts once, also when its result is written twice', async () => {
  await waits();
  await writeAttempts(database.db, [failed]);
  await writeAttempts(database.db, [failed]);
  expect(await left()).toEqual([{ failures: 1, due_at: new Date(AT + 5_000) }]);
  expect(await waitingWebhooks(database.db)).toEqual([{ webhook: 7n, dueAtMs: AT + 5_000 }]);
});

test('an event that was asked for again while an attempt was on its way keeps its new attempts, however that ended', async () => {
  await waits(0, 1);
  await writeAttempts(database.db, [{ ...failed, failures: 9, againAtMs: null }]);
  expect(await left()).toHaveLength(1);
  expect(await waitingWebhooks(database.db)).toEqual([{ webhook: 7n, dueAtMs: Number.NEGATIVE_INFINITY }]);
  const taken = { ...failed, againAtMs: null, status: 204, isDelivered: true };
  await writeAttempts(database.db, [taken]);
  expect(await left()).toHaveLength(1);
  await writeAttempts(database.db, [{ ...taken, asked: 1 }]);
  expect(await left()).toEqual([]);
});

test('a last failure ends nothing where another was written since, and a delivery ends it whatever failed before', async () => {
  await waits(3);
  await writeAttempts(database.db, [{ ...failed, failures: 9, againAtMs: null }]);
  expect(await left()).toHaveLength(1);
  await writeAttempts(database.db, [{ ...failed, failures: 2, againAtMs: null, status: 204, isDelivered: true }]);
  expect(await left()).toEqual([]);
});

test('each endpoint with something waiting is found once, with what is due first', async () => {
  await sql(
    `insert into deliveries select w, e, timestamptz '2026-06-01Z' + e * interval '1 second' from generate_series(1, 30) w, generate_series(1, 40) e`,
  );
  const waiting = await waitingWebhooks(database.db);
  expect(waiting).toEqual(Array.from({ length: 30 }, (_, n) => ({ webhook: BigInt(n + 1), dueAtMs: AT + 1_000 })));
  expect(await dueDeliveries(database.db, [{ webhook: 3n, count: 5, without: [] }], AT)).toEqual([]);
});

test('what waits for an endpoint that is disabled or gone is due at once, since it is only to be deleted', async () => {
  await sql(`insert into deliveries select w, 1, to_timestamp(${AT / 1000}) from generate_series(29, 31) w`);
  await sql('update webhooks set enabled = number <> 30');
  const atOnce = Number.NEGATIVE_INFINITY;
  expect(await waitingWebhooks(database.db)).toEqual([
    { webhook: 29n, dueAtMs: AT },
    { webhook: 30n, dueAtMs: atOnce },
    { webhook: 31n, dueAtMs: atOnce },
  ]);
  await sql('update webhooks set enabled = true');
});

test('attempts are forgotten in small steps, the oldest first, and those of the last days never', async () => {
  const days = (n: number) => AT - n * 86_400_000;
  const old = Array.from({ length: 5 }, (_, n) => ({ ...failed, eventId: BigInt(n), atMs: days(40 - n) }));
  await writeAttempts(database.db, [...old, { ...failed, atMs: days(29) }]);
  const before = days(30);
  expect([await pruneAttempts(database.db, before, 3), await pruneAttempts(database.db, before, 3)]).toEqual([3, 2]);
  expect(await pruneAttempts(database.db, before, 3)).toBe(0);
  expect(await sql('select event_id from delivery_attempts')).toEqual([{ event_id: 70n }]);
});

test('attempts that a fast clock dated hold up none of the older ones, of whichever endpoint', async () => {
  const day = 86_400_000;
  const ahead = Array.from({ length: 4 }, (_, n) => ({ ...failed, eventId: BigInt(n), atMs: AT + 20 * day }));
  await writeAttempts(database.db, ahead);
  const old = [9n, 3n, 7n].flatMap((webhook) => [{ ...failed, webhook, atMs: AT - 31 * day }]);
  await writeAttempts(database.db, old);
  expect([await pruneAttempts(database.db, AT - 30 * day, 2), await pruneAttempts(database.db, AT - 30 * day, 2)]).toEqual([
    2, 1,
  ]);
  expect(await sql('select count(*)::int as n from delivery_attempts')).toEqual([{ n: 4 }]);
});

test('what waits longer than it can is made due in small steps, and what waits for its turn is left', async () => {
  await sql(
    `insert into deliveries (webhook, event_id, due_at, failures)
       select 1, n, to_timestamp(${AT / 1000}) + make_interval(secs => case when n <= 5 then 100 else n end), 1 from generate_series(1, 10) n`,
  );
  await sql(`insert into deliveries values (1, 20, '-infinity', 0, 0)`);
  const recall = { nowMs: AT, longestMs: [10_000], limit: 2 };
  const steps = [];
  for (let n = 0; n < 4; n++) steps.push(await recallDeliveries(database.db, recall));
  expect(steps).toEqual([2, 2, 1, 0]);
  const left = await sql(
    `select event_id, due_at from deliveries where event_id between 6 and 10 and due_at > to_timestamp(${AT / 1000})`,
  );
  expect(left).toHaveLength(5);
  expect(await sql(`select from deliveries where due_at = to_timestamp(${AT / 1000})`)).toHaveLength(5);
});
