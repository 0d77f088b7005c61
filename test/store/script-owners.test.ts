// Which transactions output scripts belong to: a block may have a million of them, and a statement has half a minute. They are asked for in
// slices, none of which takes long, also for other work of this process.
import { randomBytes } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { knownScripts, ownersOf } from '../../src/store/chain/script-owners.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
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
  const held = monitorEventLoopDelay({ resolution: 5 });
  held.enable();
  const owners = await ownersOf(timed(times), [...strange, ...rows.map((row) => row.script)]);
  held.disable();
  expect(new Map(owners)).toEqual(new Map(rows.map((row) => [row.script.toString('hex'), row.id])));
  expect(owners.size).toBe(made.length);
  expect(times.length).toBeGreaterThan(40);
  expect(Math.max(...times)).toBeLessThan(IN_A_STATEMENT_MS);
  expect(held.max / 1e6).toBeLessThan(HELD_MS);
  expect(await knownScripts(service.db, [...strange.slice(0, 10), ...rows.map((row) => row.script)])).toHaveLength(made.length);
});
