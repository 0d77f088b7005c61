// The statements behind check_transaction and list_transactions: planned once for a session and not at every call, and by the index however
// small the table was then.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { listTransactionRows } from '../../src/store/transactions/lists.ts';
import { readChecks } from '../../src/store/transactions/transactions.ts';
import { freshDatabase } from '../support/postgres.ts';

let fresh: Awaited<ReturnType<typeof freshDatabase>>;
let db: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh.drop());
// one session, as one of the API's
beforeEach(() => {
  db = connect({ url: fresh.url, role: 'bursar_app', maxConnections: 1, applicationName: 'test', byIndex: true });
});
afterEach(() => db.close());

test.each([1, 3, 64])('read_checks of %i ids is planned five times in a session, however often it is asked', async (count) => {
  const ids = Array.from({ length: count }, (_, n) => `txn_${n}`);
  for (let n = 0; n < 30; n++) expect(await readChecks(db, ids)).toEqual(ids.map(() => null));
  const text = `select generic_plans::int, custom_plans::int from pg_prepared_statements where name = 'read_checks'`;
  expect((await db.query({ text })).rows).toEqual([{ generic_plans: 25, custom_plans: 5 }]);
  const plan = await db.query({ text: `explain execute read_checks('{txn_1}')` });
  expect(JSON.stringify(plan.rows)).toContain('Index Scan using transactions_pkey');
});

test('a page of a list is planned five times in a session too, and read by the index of its order', async () => {
  const wishes = { startingAfter: null, status: null, currency: null, label: null, createdGteMs: null, createdLtMs: null };
  for (let n = 0; n < 30; n++) expect(await listTransactionRows(db, { merchantId: 1n, limit: 20, ...wishes })).toEqual([]);
  const text = `select generic_plans::int, custom_plans::int from pg_prepared_statements where name = 'list_transactions'`;
  expect((await db.query({ text })).rows).toEqual([{ generic_plans: 25, custom_plans: 5 }]);
  const plan = JSON.stringify((await db.query({ text: 'explain execute list_transactions (1, 20)' })).rows);
  expect(plan).toContain('Index Scan Backward using transactions_merchant');
  expect(plan).not.toContain('Sort');
});
