// The logins of DATABASE_URL with which the service can be set up: an ordinary owner of the database to whom an administrator granted our
// roles, or one who may create them; for any other the error says what is needed. On its own PostgreSQL, since roles belong to the whole
// server.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clusterUrl, makeCluster, startCluster, stopCluster } from '../../src/main/postgres/cluster.ts';
import { type ClusterPaths, clusterPaths } from '../../src/main/postgres/cluster-paths.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { dataFolderFor, startService } from '../support/service.ts';

const TIMEOUT = 60_000;
const NEEDED = /^DATABASE_URL: .*CREATEROLE.*bursar_app, bursar_ledger and bursar_signer.*$/;
let data: string;
let paths: ClusterPaths;

async function asAdministrator(...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: clusterUrl(paths, 'postgres') });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** The URL of a new database that a new login owns. */
async function ownedBy(login: string, options = ''): Promise<string> {
  await asAdministrator(`create role ${login} login ${options}`, `create database db_${login} owner ${login}`);
  return clusterUrl(paths, `db_${login}`).replace('bursar@', `${login}@`);
}

async function works(url: string): Promise<void> {
  const db = connect({ url, role: 'bursar_app', maxConnections: 1, applicationName: 'test' });
  const { rows } = await db.query<{ who: string; n: bigint }>({
    text: 'select current_user as who, count(*) as n from ledger.account_balance',
  });
  expect(rows[0]?.who).toBe('bursar_app');
  await db.close();
}

beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'bursar-login-'));
  chmodSync(data, 0o711);
  paths = clusterPaths(data);
  const options = { paths, durable: false, logFile: join(data, 'postgres.log') };
  await makeCluster(options);
  await startCluster(options);
}, TIMEOUT);
afterAll(async () => {
  await stopCluster(paths, 3000);
  rmSync(data, { recursive: true, force: true });
  if (!paths.folder.startsWith(data)) rmSync(dirname(paths.folder), { recursive: true, force: true });
});

test('an owner who may not make roles gets an error with what is needed, in one line, as long as there are none', {
  timeout: TIMEOUT,
}, async () => {
  const url = await ownedBy('plain');
  await expect(migrate({ url })).rejects.toThrow(NEEDED);
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { DATABASE_URL: url } });
  expect(await service.ended).toBe(1);
  expect(service.output().trim().split('\n').at(-1)).toMatch(NEEDED);
  expect(service.output()).not.toMatch(/^\s+at /m);
  remove();
});

test('an owner with CREATEROLE needs nobody', { timeout: TIMEOUT }, async () => {
  const url = await ownedBy('maker', 'createrole');
  await migrate({ url });
  await works(url);
});

test('an owner whom the roles were not granted gets an error with what is needed', { timeout: TIMEOUT }, async () => {
  await expect(migrate({ url: await ownedBy('outsider') })).rejects.toThrow(NEEDED);
});

test('an ordinary owner works once an administrator has granted the roles', { timeout: TIMEOUT }, async () => {
  const url = await ownedBy('member');
  await asAdministrator('grant bursar_app, bursar_ledger, bursar_signer to member');
  await migrate({ url });
  await works(url);
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { DATABASE_URL: url } });
  await service.ready;
  expect(await service.stop()).toBe(0);
  remove();
});

test('a login that does not own the database gets an error with what is needed', { timeout: TIMEOUT }, async () => {
  await asAdministrator('create role stranger login', 'create database not_yours');
  await expect(migrate({ url: clusterUrl(paths, 'not_yours').replace('bursar@', 'stranger@') })).rejects.toThrow(NEEDED);
});
