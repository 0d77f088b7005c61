// The embedded database: found again by its data folder whatever happened to its last users, shared by all who come, never two at once,
// and also in a folder that only root may enter.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type OpenDatabase, openDatabase } from '../../src/main/postgres/embedded.ts';

const asRoot = process.getuid?.() === 0;
let folder: string;
let open: OpenDatabase[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-pg-'));
  chmodSync(folder, 0o711);
  open = [];
});
afterEach(async () => {
  for (const database of open) await database.close();
  const marker = join(folder, 'data', 'postgres-elsewhere');
  if (existsSync(marker)) rmSync(dirname(readFileSync(marker, 'utf8').trim()), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

async function openIt(): Promise<OpenDatabase> {
  const database = await openDatabase({ databaseUrl: null, dataFolder: join(folder, 'data') });
  open.push(database);
  return database;
}

async function ask(url: string, text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ answer: unknown }>(text);
    return rows[0]?.answer;
  } finally {
    await client.end();
  }
}

async function serverPid(url: string): Promise<number> {
  return Number(await ask(url, "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as answer"));
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('it did not happen within 15 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Another process that opens the same database and stays. */
async function another(): Promise<{ child: ChildProcess; url: string }> {
  const script = `
    const { openDatabase } = await import(${JSON.stringify(new URL('../../src/main/postgres/embedded.ts', import.meta.url).href)});
    const database = await openDatabase({ databaseUrl: null, dataFolder: ${JSON.stringify(join(folder, 'data'))} });
    process.on('message', async () => { await database.close(); process.exit(0); });
    process.send(database.url);`;
  const node = join(import.meta.dirname, '../../node_modules/.bin/node');
  const child = spawn(node, ['--input-type=module', '-e', script], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(message as string));
    child.once('exit', () => reject(new Error('the other process ended')));
  });
  return { child, url };
}

test.skipIf(process.platform !== 'linux')(
  'a child of a killed server that cannot end by itself does not keep the next one out',
  async () => {
    const first = await openIt();
    const client = new pg.Client({ connectionString: first.url });
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const backend = rows[0]!.pid;
    process.kill(backend, 'SIGSTOP');
    process.kill(await serverPid(first.url), 'SIGKILL');
    const startedMs = performance.now();
    expect(await ask((await openIt()).url, 'select 1 as answer')).toBe(1);
    expect(performance.now() - startedMs).toBeLessThan(20_000);
    expect(existsSync(`/proc/${backend}/cwd`)).toBe(false);
  },
  60_000,
);

test('it takes the sessions of many processes at once', async () => {
  const { url } = await openIt();
  const clients = Array.from({ length: 300 }, () => new pg.Client({ connectionString: url }));
  for (const client of clients) client.on('error', () => undefined);
  try {
    await Promise.all(clients.map((client) => client.connect()));
    expect(
      await ask(url, "select count(*)::int > 300 as answer from pg_stat_activity where backend_type = 'client backend'"),
    ).toBe(true);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
});

test('what was written is there after a stop and after a kill of the server', async () => {
  const first = await openIt();
  await ask(first.url, 'create table kept (n int)');
  await ask(first.url, 'insert into kept values (41)');
  await first.close();
  expect(first.isAlive()).toBe(false);

  const second = await openIt();
  await ask(second.url, 'update kept set n = 42');
  process.kill(await serverPid(second.url), 'SIGKILL');
  await until(() => !second.isAlive());
  await second.restart();
  expect(await ask(second.url, 'select n as answer from kept')).toBe(42);
  expect(await ask(second.url, "select current_setting('fsync') as answer")).toBe('on');
});

test('the last one who leaves stops it, not the first', async () => {
  const mine = await openIt();
  const other = await another();
  expect(other.url).toBe(mine.url);
  await mine.close();
  expect(await ask(other.url, 'select 1 as answer')).toBe(1);
  other.child.send('close');
  await until(() => other.child.exitCode !== null);
  expect(mine.isAlive()).toBe(false);
});

test('a server that outlived the kill of its only user is taken over', async () => {
  const other = await another();
  const pid = await serverPid(other.url);
  other.child.kill('SIGKILL');
  await until(() => other.child.signalCode !== null);
  const mine = await openIt();
  expect(mine.description).toContain('joined');
  expect(await serverPid(mine.url)).toBe(pid);
  await mine.close();
  expect(mine.isAlive()).toBe(false);
});

test('a pid file that names somebody else’s process does not keep it from starting', async () => {
  const first = await openIt();
  await first.close();
  writeFileSync(join(folder, 'data', 'postgres', 'postmaster.pid'), `${process.pid}\n${folder}/data/postgres\n1\n5432\n\n\n`);
  const second = await openIt();
  expect(await ask(second.url, 'select 1 as answer')).toBe(1);
});

test('a data folder path that is too long for a socket works', async () => {
  const long = join(folder, 'x'.repeat(90), 'data');
  const database = await openDatabase({ databaseUrl: null, dataFolder: long });
  open.push(database);
  expect(await ask(database.url, 'select 1 as answer')).toBe(1);
});

test('a folder that is something else is refused', async () => {
  const { mkdirSync } = await import('node:fs');
  mkdirSync(join(folder, 'data', 'postgres'), { recursive: true });
  writeFileSync(join(folder, 'data', 'postgres', 'letter.txt'), 'hello');
  await expect(openIt()).rejects.toThrow('neither empty nor a PostgreSQL data folder');
});

test.runIf(asRoot)('a folder that only root may enter works, and its data survive', async () => {
  chmodSync(folder, 0o700);
  const first = await openIt();
  await ask(first.url, 'create table kept as select 42 as n');
  await first.close();
  const second = await openIt();
  expect(await ask(second.url, 'select n as answer from kept')).toBe(42);
});

test('a DATABASE_URL that cannot be reached is reported in one line without its password', async () => {
  const wrong = openDatabase({ databaseUrl: 'postgresql://user:hunter2@127.0.0.1:1/none', dataFolder: folder });
  await expect(wrong).rejects.toThrow(/^DATABASE_URL: the database at 127\.0\.0\.1:1\/none cannot be reached: [^\n]*$/);
  await expect(wrong).rejects.not.toThrow('hunter2');
});
