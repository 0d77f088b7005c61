// What prevents a start is reported in one line and ends it at once; SIGTERM ends it at any moment; and a process that has lost the one
// that started it says so at the end.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { runCli, startCli } from '../cli/run.ts';
import { freshDatabase } from '../support/postgres.ts';
import { dataFolderFor, eventually, livingProcesses, startService } from '../support/service.ts';

const TIMEOUT = 60_000;

test('a data folder that is an executable file is refused in one line', { timeout: TIMEOUT }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-file-'));
  const file = join(folder, 'f');
  writeFileSync(file, '');
  chmodSync(file, 0o755);
  const service = startService({ dataFolder: file });
  expect(await service.ended).toBe(1);
  expect(service.output().trim()).toBe(`BURSAR_DATA_DIR: ${file} is not a folder: set it to another`);
  rmSync(folder, { recursive: true });
});

test('a HOST that no name service knows is named', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { HOST: 'no-such-host.invalid' } });
  expect(await service.ended).toBe(1);
  expect(service.output().trim()).toMatch(/^HOST: "no-such-host\.invalid" cannot be resolved[^\n]*$/);
  remove();
});

test('a data folder in which nothing can be stored is reported without a stack, and the start ends', {
  timeout: TIMEOUT,
}, async () => {
  const { folder, remove } = dataFolderFor();
  mkdirSync(folder);
  writeFileSync(join(folder, 'run'), '');
  const service = startService({ dataFolder: folder });
  expect(await service.ended).toBe(1);
  expect(service.output().trim()).toMatch(/^the start broke: EEXIST[^\n]*$/);
  remove();
});

test('a database from before the first release is refused in one line by a start and by config check, and stays as it was', {
  timeout: TIMEOUT,
}, async () => {
  const database = await freshDatabase();
  const owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  // as the files of then left it
  await owner.query(
    `truncate migration.applied; insert into migration.applied values ('0001_roles.sql', 'a'), ('0147_pushes.sql', 'b')`,
  );
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { DATABASE_URL: database.url } });
  expect(await service.ended).toBe(1);
  const line =
    /the database was made by a version from before the first release \(db\/0001_roles\.sql\), .* use an empty database/;
  expect(service.output().trim().split('\n').at(-1)).toMatch(line);
  expect(service.output()).not.toMatch(/^\s+at |^worker /m);
  expect(livingProcesses(folder)).toEqual([]);
  const checked = await runCli(['config', 'check', '--nodes'], { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder });
  expect(checked).toMatchObject({ code: 1, out: expect.stringMatching(new RegExp(`^STOPS  database: ${line.source}`, 'm')) });
  const { rows } = await owner.query<{ files: number; networks: number }>(
    'select (select count(*)::int from migration.applied) as files, (select count(*)::int from network) as networks',
  );
  expect(rows).toEqual([{ files: 2, networks: 0 }]);
  await owner.end();
  await database.drop();
  remove();
});

test('SIGTERM at any moment of a start ends it in order', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  for (const [line, ms] of [
    ['configuration', 0],
    ['configuration', 150],
    ['PostgreSQL', 0],
    ['schema', 50],
    ['worker', 0],
  ] as const) {
    const service = startService({ dataFolder: folder });
    await eventually(`the line of ${line}`, () => service.output().includes(line));
    await delay(ms);
    const began = performance.now();
    expect({ line, ended: await service.stop(), said: service.output() }).toMatchObject({ line, ended: 0 });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(service.output()).not.toMatch(/broke|^\s+at /m);
    expect(livingProcesses(folder)).toEqual([]);
  }
  remove();
});

test('a process by itself that is told to stop while it starts leaves no database behind', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  // the nodes of the sandbox are not there: it goes on starting until it is told to stop
  const worker = startCli(['worker'], { BURSAR_DATA_DIR: folder });
  await eventually('the database', () => livingProcesses(folder).length > 0);
  worker.child.kill('SIGTERM');
  expect(await worker.ended).toMatchObject({ code: 0, err: '' });
  expect(livingProcesses(folder)).toEqual([]);
  remove();
});

test('Ctrl-C while the database is being made ends the start in order', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  await eventually('the line of the configuration', () => service.output().includes('configuration'));
  await delay(200);
  expect(service.output()).not.toContain('PostgreSQL');
  process.kill(-service.launcher.pid!, 'SIGINT');
  expect({ ended: await service.ended, said: service.output() }).toEqual({
    ended: 0,
    said: expect.not.stringMatching(/initdb|signal|broke|^\s+at /m),
  });
  expect(livingProcesses(folder)).toEqual([]);
  const again = startService({ dataFolder: folder });
  await again.ready;
  expect(await again.stop()).toBe(0);
  remove();
});

test('after a kill of the supervisor each process says why it ends', {
  timeout: TIMEOUT,
}, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  await service.ready;
  const before = service.output().length;
  process.kill(service.supervisor()!, 'SIGKILL');
  expect(await service.ended).toBe('SIGKILL');
  const said = service.output().slice(before).trim().split('\n');
  expect(said.sort()).toEqual(
    ['api', 'sandbox', 'signer', 'worker'].map((name) => `${name}: ends because the process that started it is gone`),
  );
  // the database is left to the next start, which also stops it
  const next = startService({ dataFolder: folder });
  await next.ready;
  expect(await next.stop()).toBe(0);
  remove();
});

test('a node that is down keeps nobody waiting at the next start', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const post = (base: string, path: string, body: object) =>
    fetch(base + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const first = startService({ dataFolder: folder });
  expect((await post(await first.ready, '/sandbox/node', { currency: 'LTC', down: true })).status).toBe(200);
  await first.stop();
  const second = startService({ dataFolder: folder });
  const base = await second.ready;
  expect(Number(/^everything +([\d.]+) s$/m.exec(second.output())?.[1])).toBeLessThan(12);
  const auth = await post(base, '/auth', { username: 'demo', password: 'demo-demo-demo' });
  const { access_token } = (await auth.json()) as { access_token: string };
  const created = await post(base, '/create_transaction', { access_token, amount: '25.00', crypto_selected: 'BTC' });
  expect(created.status).toBe(200);
  expect(await second.stop()).toBe(0);
  remove();
});
