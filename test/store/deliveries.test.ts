// What is written of attempts to deliver an event, also when it is written twice or somebody asks for the event meanwhile; and what is forgotten.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  type Attempt,
  areTried,
  deliverAgain,
  dueDeliveries,
  forgetDeliveries,
  lastOutcomes,
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
const taken: Attempt = { ...failed, status: 204, isDelivered: true, againAtMs: null };
const waits = (failures = 0, asked = 0) => sql(`insert into deliveries values (7, 70, '-infinity', ${failures}, ${asked})`);
const left = () => sql('select failures, due_at from deliveries');

test('a failure counts once, also when its result is written twice', async () => {
  await waits();
  await writeAttempts(database.db, [failed]);
  await writeAttempts(database.db, [failed]);
  expect(await left()).toEqual([{ failures: 1, due_at: new Date(AT + 5_000) }]);
  expect(await waitingWebhooks(database.db)).toEqual([{ webhook: 7n, dueAtMs: AT + 5_000 }]);
});

test('endpoints with something waiting are found in the order of their numbers, however their rows lie', async () => {
  await sql(`insert into webhooks (number, id, merchant_id, url, secret, created_at) overriding system value
      select n, 'wh_' || n, (select min(id) from merchants), 'http://127.0.0.1:1/', 'whsec_AAAA', now()
        from generate_series(31, 2000) n order by n desc`);
  await sql(`insert into deliveries select n, n, '-infinity', 0, 0 from generate_series(1, 2000) n`);
  const found = (await waitingWebhooks(database.db)).map(({ webhook }) => Number(webhook));
  expect(found).toEqual(Array.from({ length: 2_000 }, (_, n) => n + 1));
  await sql('delete from webhooks where number > 30');
});

test('an event that was asked for again while an attempt was on its way keeps its new attempts, however that ended', async () => {
  await waits(0, 1);
  await writeAttempts(database.db, [{ ...failed, failures: 9, againAtMs: null }]);
  expect(await left()).toHaveLength(1);
  expect(await waitingWebhooks(database.db)).toEqual([{ webhook: 7n, dueAtMs: Number.NEGATIVE_INFINITY }]);
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
  expect(await dueDeliveries(database.db, [{ webhook: 3n, count: 5, again: 2, without: [] }], AT)).toEqual([]);
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

test('what waits longer than it can gets another time within its pause, in small steps, and what waits for its turn is left', async () => {
  await sql(
    `insert into deliveries (webhook, event_id, due_at, failures)
       select 1, n, to_timestamp(${AT / 1000}) + make_interval(secs => case when n <= 5 then 100 else n end), 1 from generate_series(1, 10) n`,
  );
  await sql(`insert into deliveries values (1, 20, '-infinity', 0, 0)`);
  const recall = { nowMs: AT, longestMs: [10_000], limit: 2 };
  const steps = [];
  for (let n = 0; n < 4; n++) steps.push(await recallDeliveries(database.db, recall));
  expect(steps).toEqual([2, 2, 1, 0]);
  const afterS = `extract(epoch from due_at)::float8 - ${AT / 1000}`;
  expect(await sql(`select from deliveries where event_id between 6 and 10 and ${afterS} = event_id`)).toHaveLength(5);
  expect(await sql(`select from deliveries where event_id <= 5 and ${afterS} between 0 and 10`)).toHaveLength(5);
  expect(await sql(`select from deliveries where event_id = 20 and due_at = '-infinity'`)).toHaveLength(1);
});

/** So many events of one object; their numbers. */
async function eventsOf(objectId: string, count: number): Promise<bigint[]> {
  const rows = await sql(
    `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
       select m.id, '${objectId}', n, 'transaction.started', 'started', 'a test', now() from merchants m, generate_series(1, ${count}) n returning id`,
  );
  await sql('delete from deliveries');
  return rows.map(({ id }) => BigInt(id));
}

test('what is due is read up to now, as much of it as is wanted, the longest waiting first, without what is on its way', async () => {
  const [one, two, three, four] = await eventsOf('txn_due', 4);
  await sql(
    `insert into deliveries (webhook, event_id, due_at)
       select w, id, to_timestamp(${AT / 1000}) - make_interval(secs => case id when ${one} then 0 when ${two} then 5 when ${three} then 9 else -0.001 end)
         from generate_series(3, 4) w, unnest(array[${one}, ${two}, ${three}, ${four}]) id`,
  );
  const due = async (count: number, without: readonly bigint[] = [], nowMs = AT) =>
    (await dueDeliveries(database.db, [{ webhook: 3n, count, again: 0, without }], nowMs)).map(({ event }) => event.id);
  expect(await due(9)).toEqual([three, two, one]);
  expect(await due(2)).toEqual([three, two]);
  expect(await due(2, [three as bigint])).toEqual([two, one]);
  expect(await due(9, [two as bigint, one as bigint], AT + 1)).toEqual([three, four]);
  const both = [4n, 3n].map((webhook) => ({ webhook, count: 1, again: 0, without: [] }));
  expect((await dueDeliveries(database.db, both, AT)).map(({ webhook }) => webhook)).toEqual([4n, 3n]);
});

test('what has failed before has its part of what is taken, and what was not tried yet the rest, however much there is of either', async () => {
  const ids = await eventsOf('txn_both', 9);
  await sql(
    `insert into deliveries (webhook, event_id, due_at, failures)
       select 5, id, case when n <= 5 then '-infinity' when n = 9 then to_timestamp(${AT / 1000}) + interval '1 ms' else to_timestamp(${AT / 1000}) - make_interval(secs => n) end, case when n <= 5 then 0 else 1 end
         from unnest(array[${ids}]) with ordinality as i (id, n)`,
  );
  const due = async (count: number, again: number, without: readonly number[] = []) => {
    const wanted = { webhook: 5n, count, again, without: without.map((n) => ids[n] as bigint) };
    return (await dueDeliveries(database.db, [wanted], AT)).map(({ event }) => ids.indexOf(event.id));
  };
  expect([await due(1, 0), await due(1, 1), await due(4, 2)]).toEqual([[0], [7], [0, 1, 7, 6]]);
  // where there is less of one, the other has it
  expect([await due(4, 2, [0, 1, 2, 3]), await due(4, 2, [5, 6, 7]), await due(4, 3, [6, 7])]).toEqual([
    [4, 7, 6, 5],
    [0, 1, 2, 3],
    [0, 1, 2, 5],
  ]);
  expect((await due(20, 2)).length).toBe(8);
});

test('an event that is asked for again waits once more for every endpoint that is enabled and wants it', async () => {
  const [id] = (await eventsOf('txn_again', 1)) as [bigint];
  await sql(
    `update webhooks set enabled = number <> 2, events = case number when 3 then array['transaction.started'] when 4 then array['payout.failed'] end where number <= 4`,
  );
  await sql(`insert into deliveries (webhook, event_id, due_at, failures, asked) values (1, ${id}, now(), 4, 1)`);
  expect(await deliverAgain(database.db, id)).toBe(28);
  expect(await sql('select webhook::int, failures, asked from deliveries where webhook <= 4 order by webhook')).toEqual([
    { webhook: 1, failures: 0, asked: 2 },
    { webhook: 3, failures: 0, asked: expect.any(Number) },
  ]);
  expect(await deliverAgain(database.db, 1_000_000n)).toBe(0);
  await sql('update webhooks set enabled = true, events = null');
});

test('a result that is written twice says nothing of what was asked for in between', async () => {
  const [id] = (await eventsOf('txn_twice', 1)) as [bigint];
  await sql(`insert into deliveries values (7, ${id}, '-infinity', 0, 0)`);
  await writeAttempts(database.db, [{ ...taken, eventId: id }]);
  expect(await left()).toEqual([]);
  await deliverAgain(database.db, id);
  // its commit was not answered, or another worker delivered meanwhile
  await writeAttempts(database.db, [{ ...taken, eventId: id }]);
  await writeAttempts(database.db, [{ ...failed, eventId: id }]);
  expect(await sql('select failures, isfinite(due_at) as later from deliveries where webhook = 7')).toEqual([
    { failures: 0, later: false },
  ]);
});

test.each([
  [
    'a result is written',
    (id: bigint) =>
      writeAttempts(database.db, [
        { ...failed, webhook: 9n, eventId: id },
        { ...taken, webhook: 8n, eventId: id },
        { ...failed, eventId: id },
      ]),
  ],
  ['an event is asked for again', (id: bigint) => deliverAgain(database.db, id)],
])('where %s the endpoint with the lowest number is locked first, so that two never wait for each other', async (_what, work) => {
  const [id] = (await eventsOf(`txn_${randomUUID()}`, 1)) as [bigint];
  await sql(`insert into deliveries select n, ${id}, '-infinity', 0, 0 from generate_series(30, 7, -1) n`);
  let working: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (held) => {
    await held.query({ text: 'select from deliveries where webhook = 7 for update' });
    working = work(id);
    const waiting = 'select from pg_locks join pg_stat_activity using (pid) where not granted and datname = current_database()';
    while ((await sql(waiting)).length === 0);
    expect(await sql('select from deliveries where webhook > 7 for update nowait')).toHaveLength(23);
  });
  await working;
});

test('everything due is tried when nothing waits that was due by then', async () => {
  expect(await areTried(database.db, AT)).toBe(true);
  await sql(
    `insert into deliveries select w, 1, to_timestamp(${AT / 1000}) + make_interval(secs => w) from generate_series(1, 2) w`,
  );
  expect([
    await areTried(database.db, AT),
    await areTried(database.db, AT + 1_000),
    await areTried(database.db, AT + 1_500),
  ]).toEqual([true, false, false]);
});

test('only what waits for an endpoint that is gone or disabled is forgotten, in small steps', async () => {
  await sql('update webhooks set enabled = number <> 2 where number <= 2');
  await sql(`insert into deliveries select w, e, now() from unnest(array[1, 2, 77]) w, generate_series(1, 5) e`);
  const forgotten = [];
  for (const webhook of [1n, 2n, 2n, 77n]) forgotten.push(await forgetDeliveries(database.db, webhook, 3));
  expect(forgotten).toEqual([0, 3, 2, 3]);
  expect(await sql('select webhook::int, count(*)::int from deliveries group by 1 order by 1')).toEqual([
    { webhook: 1, count: 5 },
    { webhook: 77, count: 2 },
  ]);
  await sql('update webhooks set enabled = true');
});

test('of each endpoint its last attempts are told, the oldest first, without those that say nothing of it', async () => {
  const made = [1, 2, 3, 4].map((n) => ({ ...failed, atMs: AT + n, tookMs: n, status: n === 4 ? 204 : 500 }));
  const unsent = { ...failed, atMs: AT + 5, status: null, error: 'unreadable: x' };
  const silent = { ...failed, webhook: 8n, status: null, error: 'timed_out: x' };
  const failedHere = { ...unsent, atMs: AT + 6, error: 'failed_here: x' };
  await writeAttempts(database.db, [...made.toReversed(), unsent, failedHere, silent]);
  const past = await lastOutcomes(database.db, [7n, 8n, 9n], 4);
  expect([...past.keys()]).toEqual([7n, 8n]);
  expect(past.get(7n)).toEqual([3, 4].map((n) => ({ webhook: 7n, atMs: AT + n, tookMs: n, status: n === 4 ? 204 : 500 })));
  expect(past.get(8n)).toMatchObject([{ status: null }]);
});
