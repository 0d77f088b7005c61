// What each process of a running group is given: no more than its own work needs. Read from outside, as the system shows it.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/main/postgres/embedded.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 60_000;
const PASSPHRASE = 'only the signer may know this';
const { folder, remove } = dataFolderFor();
let service: Service;

beforeAll(async () => {
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SIGNER_PASSPHRASE: PASSPHRASE, BURSAR_LND_PAY_MACAROON: 'this one spends too' },
  });
  await service.ready;
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

const environmentOf = (entry: string): string => readFileSync(`/proc/${service.processOf(entry)}/environ`, 'latin1');
const isLinux = process.platform === 'linux';

test('in the embedded database no session of the service can do more than its role, not even after leaving it', {
  timeout: TIMEOUT,
}, async () => {
  const database = await openDatabase({ databaseUrl: null, dataFolder: folder });
  const owner = new pg.Client({ connectionString: database.url });
  const client = new pg.Client({ connectionString: database.serviceUrl });
  await owner.connect();
  await client.connect();
  const { rows } = await owner.query<{ who: string; what: string }>(
    "select distinct usename as who, application_name as what from pg_stat_activity where application_name like 'bursar %'",
  );
  expect(rows.map(({ what }) => what).sort()).toEqual(expect.arrayContaining(['bursar api', 'bursar worker']));
  expect(new Set(rows.map(({ who }) => who))).toEqual(new Set(['bursar_service']));
  for (const statement of [
    'set role bursar_ledger',
    'set role bursar',
    'set session authorization bursar',
    'update ledger.balance set amount = amount + 1',
    'alter table ledger.posting disable trigger user',
    'create table mine (n int)',
    "select pg_read_file('postmaster.pid')",
  ]) {
    await expect(client.query(`reset role; ${statement}`), statement).rejects.toThrow(/permission denied|must be owner/);
  }
  await client.end();
  await owner.end();
  await database.close();
});

test.runIf(isLinux)('what can spend is in the environment of the signer only', { timeout: TIMEOUT }, async () => {
  expect(environmentOf('signer')).toContain(PASSPHRASE);
  const check = () => {
    for (const entry of ['api', 'worker', 'sandbox-process']) {
      expect(environmentOf(entry)).toContain('BURSAR_DATA_DIR=');
      expect(environmentOf(entry)).not.toMatch(/SIGNER_PASSPHRASE|LND_PAY|only the signer|spends too/);
    }
  };
  check();
  // also when it was started again
  const pid = service.processOf('api')!;
  process.kill(pid, 'SIGKILL');
  await eventually('another API', () => ![null, pid].includes(service.processOf('api')));
  check();
});

test('a passphrase file that cannot be read is reported before anything is started', { timeout: TIMEOUT }, async () => {
  const other = dataFolderFor();
  const BURSAR_SIGNER_PASSPHRASE_FILE = join(folder, 'no-such-file');
  const refused = startService({ dataFolder: other.folder, environment: { BURSAR_SIGNER_PASSPHRASE_FILE } });
  expect(await refused.ended).toBe(1);
  expect(refused.output().trim()).toBe(`BURSAR_SIGNER_PASSPHRASE_FILE: ${BURSAR_SIGNER_PASSPHRASE_FILE} cannot be read (ENOENT)`);
  other.remove();
});

test('a passphrase in a file opens the seed, and the processes that may not know it are not told of the file', {
  timeout: TIMEOUT,
}, async () => {
  await service.stop();
  const BURSAR_SIGNER_PASSPHRASE_FILE = join(folder, 'my-passphrase');
  writeFileSync(BURSAR_SIGNER_PASSPHRASE_FILE, `${PASSPHRASE}\n`, { mode: 0o600 });
  service = startService({ dataFolder: folder, environment: { BURSAR_SIGNER_PASSPHRASE_FILE } });
  await service.ready;
  if (isLinux) {
    expect(environmentOf('signer')).toContain('my-passphrase');
    for (const entry of ['api', 'worker', 'sandbox-process']) expect(environmentOf(entry)).not.toContain('my-passphrase');
  }
  rmSync(BURSAR_SIGNER_PASSPHRASE_FILE);
});

test('a passphrase in the settings file reaches the signer and the environment of nobody', { timeout: TIMEOUT }, async () => {
  const { folder: data, remove: forget } = dataFolderFor();
  const place = mkdtempSync(join(tmpdir(), 'bursar-env-'));
  const BURSAR_ENV_FILE = join(place, 'settings');
  writeFileSync(BURSAR_ENV_FILE, `BURSAR_SIGNER_PASSPHRASE='${PASSPHRASE}'\nBURSAR_SETTLEMENT_SECONDS=4321\n`, { mode: 0o600 });
  const one = startService({ dataFolder: data, environment: { BURSAR_ENV_FILE } });
  await one.ready;
  expect(one.output()).toContain(`configuration (with ${BURSAR_ENV_FILE})`);
  const files = ['seed.json', 'passphrase'].map((name) => existsSync(join(data, 'signer', name)));
  // sealed by what the file says: none was generated beside it
  expect(files).toEqual([true, false]);
  if (isLinux) {
    const group = [one.launcher.pid, one.supervisor(), ...['api', 'worker', 'signer', 'sandbox-process'].map(one.processOf)];
    for (const pid of group) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      expect(environment).toContain('BURSAR_DATA_DIR=');
      expect(environment).not.toContain(PASSPHRASE);
    }
    expect(readFileSync(`/proc/${one.processOf('worker')}/environ`, 'latin1')).toContain('BURSAR_SETTLEMENT_SECONDS=4321');
  }
  await one.stop();
  // a change of the file while nobody looks is seen by the next start
  writeFileSync(BURSAR_ENV_FILE, 'BURSAR_SIGNER_PASSPHRASE="another passphrase"\n', { mode: 0o600 });
  const other = startService({ dataFolder: data, environment: { BURSAR_ENV_FILE } });
  expect(await other.ended).toBe(1);
  expect(other.output()).toMatch(/^signer: .*does not open: BURSAR_SIGNER_PASSPHRASE is another one/m);
  rmSync(place, { recursive: true });
  forget();
});
