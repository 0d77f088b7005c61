// The migrations: each once, in order, however many processes start at the same time; forward only, and a refusal names the file.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { freshDatabase } from '../support/postgres.ts';

let folder: string;
let base: Awaited<ReturnType<typeof freshDatabase>>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-migrate-'));
  base = await freshDatabase();
  // as if nothing had been applied; what the files of these tests make collides with nothing
  await asOwner('drop schema migration cascade');
});
afterEach(async () => {
  await base.drop();
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}
const run = () => migrate({ url: base.url, folder });
const asOwner = async (text: string) => {
  const { connect } = await import('../../src/store/postgres/connect.ts');
  const owner = connect({ url: base.url, role: null, maxConnections: 1, applicationName: 'test' });
  try {
    return (await owner.query<{ n: number }>({ text })).rows;
  } finally {
    await owner.close();
  }
};

test('each file is applied once, by whichever of many processes comes first', async () => {
  file('0001_a.sql', 'create table counted (n int)');
  file('0002_b.sql', 'insert into counted values (1); select pg_sleep(0.05)');
  const results = await Promise.all(Array.from({ length: 6 }, run));
  expect(results.flat()).toEqual(['0001_a.sql', '0002_b.sql']);
  expect(await asOwner('select count(*)::int as n from counted')).toEqual([{ n: 1 }]);
  expect(await run()).toEqual([]);
});

test('a file that fails leaves nothing of itself, and those before it stay', async () => {
  file('0001_a.sql', 'create table first_one (n int)');
  file('0002_b.sql', 'create table second_one (n int); select 1 / 0');
  await expect(run()).rejects.toThrow(/^db\/0002_b\.sql: division by zero$/);
  expect(await asOwner("select to_regclass('second_one') is null and to_regclass('first_one') is not null as n")).toEqual([
    { n: true },
  ]);
  file('0002_b.sql', 'create table second_one (n int)');
  expect(await run()).toEqual(['0002_b.sql']);
});

test('a file that was changed after it had been applied is refused by its name', async () => {
  file('0001_a.sql', 'create table first_one (n int)');
  await run();
  file('0001_a.sql', 'create table first_one (n bigint)');
  await expect(run()).rejects.toThrow(/^db\/0001_a\.sql was changed/);
});

test('a database of a newer version, and a new file before an applied one, are refused', async () => {
  file('0001_a.sql', 'select 1');
  file('0003_c.sql', 'select 1');
  await run();
  file('0002_b.sql', 'select 1');
  await expect(run()).rejects.toThrow(/^db\/0002_b\.sql is new but sorts before db\/0003_c\.sql/);
  rmSync(join(folder, '0002_b.sql'));
  rmSync(join(folder, '0003_c.sql'));
  await expect(run()).rejects.toThrow(/^db\/0003_c\.sql was applied to this database, but is not in this version/);
});

test('a database that the files from before the first release made is refused in one line, and nothing is written', async () => {
  file('0001_old_beginning.sql', 'create table old_one (n int)');
  file('0147_old_end.sql', 'select 1');
  await run();
  rmSync(join(folder, '0001_old_beginning.sql'));
  rmSync(join(folder, '0147_old_end.sql'));
  file('0001_beginning.sql', 'create table new_one (n int)');
  await expect(run()).rejects.toThrow(
    /^the database was made by a version from before the first release \(db\/0001_old_beginning\.sql\), which this version cannot continue: use an empty database \(DATABASE_URL\), or in the sandbox remove the data folder \(BURSAR_DATA_DIR\)[^\n]*$/,
  );
  expect(await asOwner("select to_regclass('new_one') is null as n")).toEqual([{ n: true }]);
  expect(await asOwner('select count(*)::int as n from migration.applied')).toEqual([{ n: 2 }]);
});
