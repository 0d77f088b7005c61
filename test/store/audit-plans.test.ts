// What the planner needs for the questions of the audit: thousands of audits run in the tests, each on a new database with nothing planned yet.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

/** A join of eight tables in every order needs 17 MB and 50 ms; of those that are, the largest needs 3 MB and 4 ms. */
const MOST_KB = 5_000;

let service: ServiceOnDatabase;
let client: pg.Client;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  client = new pg.Client({ connectionString: service.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await service?.drop();
});

test('no question of the audit has the planner try every order of many tables', async () => {
  const asked = new Map<string, string>();
  const watched = (sql: Sql): Sql => ({
    ...sql,
    query(statement) {
      if (statement.name !== undefined) asked.set(statement.name, statement.text);
      return sql.query<never>(statement);
    },
  });
  const db: typeof service.db = {
    ...service.db,
    transaction: (work, options) => service.db.transaction((sql) => work(watched(sql)), options),
  };
  await runAudit({ ...service.ctx, db });
  expect(asked.size).toBeGreaterThan(70);
  const tooMuch: string[] = [];
  for (const [name, text] of asked) {
    const { rows } = await client.query(`explain (generic_plan, memory, format json) ${text}`);
    const kb = Number(rows[0]['QUERY PLAN'][0].Planning['Memory Used']);
    if (kb > MOST_KB) tooMuch.push(`${name}: ${kb} kB`);
  }
  expect(tooMuch).toEqual([]);
});
