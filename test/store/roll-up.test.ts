// The roll-up of the service's own accounts by several workers at once: its rows are locked in one order, so that it cannot deadlock.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postEntries, rollUp } from '../../src/store/ledger/ledger.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
let other: pg.Client;
beforeAll(async () => {
  base = await freshDatabase();
  other = new pg.Client({ connectionString: base.url });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await base.drop();
});

/** One deposit in each of two currencies, so in two accounts of the service. */
async function postBoth(key: string): Promise<void> {
  const entries = ['BTC', 'LTC'].map((currency) => ({
    key: `dep:${key}:${currency}`,
    kind: 'deposit',
    postings: [
      { account: `asset:chain:${currency}`, amount: 7n },
      { account: `merchant:1:available:${currency}`, amount: -7n },
    ],
    parts: [],
  }));
  await postEntries(
    base.db,
    entries.map((entry) => ({ entry, transactionId: null, atMs: Date.UTC(2026, 0, 1) })),
  );
}
async function rolledUpRows(): Promise<string[]> {
  const { rows } = await other.query('select account_id from ledger.rolled_up_balance order by account_id');
  return rows.map((row) => row.account_id);
}
async function waiting(): Promise<boolean> {
  const { rows } = await other.query(
    `select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  );
  return Number(rows[0].n) > 0;
}

test('waits for the first of its accounts before it takes another, however the rows lie', async () => {
  await postBoth('a');
  expect(await rollUp(base.db, 100)).toBe(2);
  const [first, second] = await rolledUpRows();
  // written anew, its row lies behind the other one
  await other.query('update ledger.rolled_up_balance set amount = amount where account_id = $1', [first]);
  await postBoth('b');
  await other.query('begin');
  await other.query('select 1 from ledger.rolled_up_balance where account_id = $1 for update', [first]);
  const rolling = rollUp(base.db, 100);
  while (!(await waiting()));
  await other.query('select 1 from ledger.rolled_up_balance where account_id = $1 for update nowait', [second]);
  await other.query('commit');
  expect(await rolling).toBe(2);
  const { rows } = await other.query('select amount from ledger.rolled_up_balance order by account_id');
  expect(rows.map((row) => row.amount)).toEqual(['14', '14']);
  expect(await rollUp(base.db, 100)).toBe(0);
});
