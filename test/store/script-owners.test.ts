// Which transactions output scripts belong to: a block may have a million of them, and a statement has half a minute. They are asked for in
// slices, none of which takes long, also for other work of this process.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { knownScripts, ownersOf } from '../../src/store/chain/script-owners.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { longestTurn } from '../support/longest-turn.ts';
import { sameHashScripts } from '../support/same-hash-scripts.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MANY = 900_000;
const IN_A_STATEMENT_MS = 3_000;
const HELD_MS = 100;

let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(() => service.drop());

/** As the database, noting how long each statement takes. */
function timed(times: number[]): Sql {
  return {
    async query(statement) {
      const began = performance.now();
      const result = await service.db.query<never>(statement);
      times.push(performance.now() - began);
      return result;
    },
  };
}

test('900,000 scripts are asked for in slices: no statement and no turn of this process takes long', {
  timeout: 120_000,
}, async () => {
  const made = await Promise.all([service.create(), service.create()]);
  const { rows } = await service.admin.query<{ id: string; script: Buffer }>('select id, script from transactions');
  const strange = Array.from({ length: MANY }, () => Buffer.concat([Buffer.from([0, 20]), randomBytes(20)]));
  const times: number[] = [];
  let owners: Awaited<ReturnType<typeof ownersOf>> = new Map();
  const held = await longestTurn(async () => {
    owners = await ownersOf(timed(times), [...strange, ...rows.map((row) => row.script)]);
  });
  expect(new Map(owners)).toEqual(new Map(rows.map((row) => [row.script.toString('hex'), row.id])));
  expect(owners.size).toBe(made.length);
  expect(times.length).toBeGreaterThan(40);
  expect(Math.max(...times)).toBeLessThan(IN_A_STATEMENT_MS);
  expect(held).toBeLessThan(HELD_MS);
  expect(await knownScripts(service.db, [...strange.slice(0, 10), ...rows.map((row) => row.script)])).toHaveLength(made.length);
});

test('58,000 scripts that a stranger has made to have one hash cost a database of 30,000 transactions no more than others', {
  timeout: 120_000,
}, async () => {
  await service.create();
  const { rows } = await service.admin.query<{ name: string }>(
    `select column_name as name from information_schema.columns where table_name = 'transactions' and table_schema = 'public'
       and column_name not in ('id', 'script', 'address', 'address_index')`,
  );
  const others = rows.map(({ name }) => name).join(', ');
  await service.admin.query(
    `insert into transactions (id, script, address, ${others})
       select 'txn_' || lpad(n::text, 22, '0'), decode('0014' || lpad(to_hex(n), 40, '0'), 'hex'), 'a' || n, ${others}
         from (select ${others} from transactions limit 1) t, generate_series(1, 30000) n`,
  );
  const chosen = sameHashScripts(58_000);
  const { rows: same } = await service.admin.query<{ n: bigint }>(
    'select count(distinct hashbytea(s)) as n from unnest($1::bytea[]) as s',
    [chosen.slice(0, 100)],
  );
  expect(same[0]?.n).toBe(1n);
  const began = performance.now();
  expect((await ownersOf(service.db, chosen)).size).toBe(0);
  expect(performance.now() - began).toBeLessThan(2_000);
});
