// What changes very many payments of one chain together (a reorganisation, an outage, a clock that was set, locks) is written in slices of
// one database transaction: one statement for all of them would exceed the time limit of a statement, and be tried again for ever.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCursor, setCaughtUp } from '../../src/store/chain/blocks.ts';
import { moveWaitingTimes } from '../../src/store/chain/clock-settings.ts';
import { readLockable, readLocksOf, recordLocks } from '../../src/store/chain/payment-locks.ts';
import { takeBackAbove } from '../../src/store/chain/sightings.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const COUNT = 12_000;
const MOST_ROWS = 5_000;
let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  const { transactionId } = await service.create();
  await service.admin.query(
    `insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, height, block_hash, block_time, last_height, seen_at, caught_up_at, found_mined)
       select 'BTC', $1, repeat('ab', 32), n, 546, sha256(n::text::bytea), 'mined', 101, repeat('cd', 32), $2::timestamptz, 101, $2::timestamptz, $2::timestamptz, true
         from generate_series(1, ${COUNT}) n`,
    [transactionId, new Date(service.now())],
  );
  await service.admin.query('analyze payments');
}, 60_000);
afterAll(() => service.drop());

/** Runs the work in one database transaction; returns how many payments each of its statements changed. */
async function changed(work: (sql: Sql) => Promise<unknown>): Promise<number[]> {
  const counts: number[] = [];
  await service.db.transaction((sql) =>
    work({
      async query<R extends Record<string, unknown>>(statement: Parameters<Sql['query']>[0]) {
        const result = await sql.query<R>(statement);
        if (/update payments/.test(statement.text)) counts.push(result.rowCount ?? 0);
        return result;
      },
    }),
  );
  return counts;
}
function expectSlices(counts: readonly number[]): void {
  expect(Math.max(...counts)).toBeLessThanOrEqual(MOST_ROWS);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(COUNT);
}
async function distinct(columns: string): Promise<unknown> {
  const { rows } = await service.admin.query(`select ${columns}, count(*)::int as count from payments group by ${columns}`);
  return rows;
}

// one after the other: each goes on from what the one before has left
test('a reorganisation takes back the payments of a block in slices', async () => {
  const atMs = service.now();
  const lost = { height: 100, oldTip: 101, newTip: 101, atMs };
  expectSlices(await changed((sql) => takeBackAbove(sql, 'BTC', lost)));
  expect(await distinct('state, height, gone_since')).toEqual([
    { state: 'gone', height: null, gone_since: new Date(atMs), count: COUNT },
  ]);
});

test('time below the height where payments were last seen is added to each, in slices', async () => {
  const cursor = (await readCursor(service.db, 'BTC'))!;
  const atMs = cursor.caughtUpAtMs + 60_000;
  expectSlices(await changed((sql) => setCaughtUp(sql, 'BTC', cursor, atMs)));
  expect(await distinct('gone_since')).toEqual([{ gone_since: new Date(atMs), count: COUNT }]);
});

test('a clock that was set moves the dates of all that waits once, in slices', async () => {
  const before = (await distinct('gone_since, seen_at')) as { gone_since: Date; seen_at: Date }[];
  const set = { byMs: -3_600_000, nowMs: service.now(), sinceMs: null };
  expectSlices(await changed((sql) => moveWaitingTimes(sql, 'BTC', set)));
  expect(await distinct('gone_since, seen_at')).toEqual([
    {
      gone_since: new Date(before[0]!.gone_since.getTime() - 3_600_000),
      seen_at: new Date(before[0]!.seen_at.getTime() - 3_600_000),
      count: COUNT,
    },
  ]);
});

test('the locks of very many payments are written in slices', async () => {
  await service.admin.query(`update payments set state = 'mempool', gone_since = null`);
  expect(await readLockable(service.db, 'BTC', 0)).toEqual([{ txid: 'ab'.repeat(32), lock: null }]);
  const open = await readLocksOf(service.db, 'BTC', ['ab'.repeat(32)]);
  const locked = open.map((one) => ({ ...one, lock: 'instantsend' as const }));
  expectSlices(await changed((sql) => recordLocks(sql, locked)));
  expect(await distinct('lock')).toEqual([{ lock: 'instantsend', count: COUNT }]);
});
