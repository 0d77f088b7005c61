// The ten minutes of rule 17 and the 72 hours of rule 15 count only while our node can be read: an outage moves the beginning of "gone".
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCursor, setCaughtUp } from '../../src/store/chain/blocks.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { freshDatabase } from '../support/postgres.ts';

const BEGIN_MS = Date.parse('2026-01-01T00:00:00Z');
const MINUTE_MS = 60_000;
let database: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  database = await freshDatabase();
  const begin = new Date(BEGIN_MS);
  const run = (text: string, values: unknown[]) => database.db.query({ text, values });
  await run(
    `insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at) values ('BTC', 100, 'h', $1, 100, $1)`,
    [begin],
  );
  await run(
    `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments, address,
                               created_at, window_ends_at)
       values ('txn_1', 1, 'BTC', 'succeeded', 5000, 1000, 50000, $1, '[]', 100, 'accept', 'a', $1, $1)`,
    [begin],
  );
  await run(
    `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, seen_at, caught_up_at, found_mined, gone_since)
       values ('txn_1', 'BTC', 'aa', 0, 1000, 'x', 'gone', $1, $1, false, $1)`,
    [begin],
  );
});
afterAll(() => database.drop());

async function caughtUp(minutes: number): Promise<number> {
  const cursor = await readCursor(database.db, 'BTC');
  if (cursor === null) throw new Error('no cursor');
  expect(await setCaughtUp(database.db, 'BTC', cursor, BEGIN_MS + minutes * MINUTE_MS)).toBe(true);
  const { rows } = await database.db.query<{ gone_since: Date }>({ text: 'select gone_since from payments' });
  return ((rows[0]?.gone_since.getTime() ?? 0) - BEGIN_MS) / MINUTE_MS;
}

test('while the node is read the time of a gone payment runs, also over a jump of the clock', async () => {
  expect(await caughtUp(2)).toBe(0);
  expect(await caughtUp(5)).toBe(0);
});

test('the time of an outage does not count, once', async () => {
  await recordCondition(database.db, 'BTC', { state: 'down', reason: 'no answer', height: null }, BEGIN_MS + 6 * MINUTE_MS);
  expect(await caughtUp(25)).toBe(20);
  expect(await caughtUp(30)).toBe(20);
});
