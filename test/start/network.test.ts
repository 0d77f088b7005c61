// A start or a command whose BURSAR_NETWORK is not that of the database is refused in one line, and leaves the database as it was.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Ran, runCli } from '../cli/run.ts';
import { account } from '../keys/vectors.ts';
import { freshDatabase } from '../support/postgres.ts';
import { dataFolderFor, livingProcesses, startService } from '../support/service.ts';

vi.setConfig({ testTimeout: 90_000 });

const MERCHANT = ['--username', 'shop', '--password', 'long enough password', '--email', 'a@example.com', '--business-name', 'M'];
const LINE =
  'the database belongs to mainnet, but BURSAR_NETWORK is sandbox (or not set): set BURSAR_NETWORK=mainnet, or use another database (DATABASE_URL or BURSAR_DATA_DIR)';
const folder = mkdtempSync(join(tmpdir(), 'bursar-network-'));
let database: Awaited<ReturnType<typeof freshDatabase>>;

beforeAll(async () => {
  database = await freshDatabase();
  const production = { DATABASE_URL: database.url, BURSAR_DATA_DIR: join(folder, 'production'), BURSAR_NETWORK: 'mainnet' };
  expect(await runCli(['merchant', 'add', ...MERCHANT], production)).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** Everything that a start, a worker or a command could write first. */
async function contents(): Promise<unknown> {
  const { rows } = await database.db.query({
    text: `select (select string_agg(username, ',') from users) as users, (select count(*) from account_xpubs) as keys,
           (select count(*) from chain_cursors) as cursors, (select count(*) from node_conditions) as nodes, (select count(*) from rates) as rates,
           (select count(*) from breakers) as breakers, (select count(*) from signing_keys) as signing, (select name from network) as network`,
  });
  return rows[0];
}

test('a start in the sandbox on a database of mainnet ends with one line, and nothing was written or begun', async () => {
  const before = await contents();
  const { folder: data, remove } = dataFolderFor();
  const service = startService({ dataFolder: data, environment: { DATABASE_URL: database.url } });
  expect(await service.ended).toBe(1);
  expect(service.output().trim().split('\n').at(-1)).toBe(LINE);
  expect(service.output()).not.toMatch(/^\s+at |^sandbox |^signer |^worker /m);
  expect(livingProcesses(data)).toEqual([]);
  for (const name of ['sandbox', 'signer']) expect(existsSync(join(data, name)), name).toBe(false);
  expect(await contents()).toEqual(before);
  expect(before).toMatchObject({ users: 'shop', network: 'mainnet' });
  remove();
});

test('commands and single processes without the network are refused too', async () => {
  const before = await contents();
  const forgotten = { DATABASE_URL: database.url, BURSAR_DATA_DIR: join(folder, 'forgotten'), PORT: '0' };
  const second = MERCHANT.map((word) => (word === 'shop' ? 'second' : word));
  for (const args of [
    ['merchant', 'add', ...second],
    ['audit'],
    ['migrate'],
    ['keys', 'init'],
    ['signer'],
    ['worker'],
    ['api'],
  ]) {
    const ran: Ran = await runCli(args, forgotten);
    expect(ran, args.join(' ')).toMatchObject({ code: 1, out: '' });
    expect(ran.err, args.join(' ')).toMatch(new RegExp(`^(bursar: )?${LINE.replace(/[()]/g, '\\$&')}\n$`));
  }
  expect(await contents()).toEqual(before);
});

test('an audit that takes a folder of the sandbox for mainnet trips no breaker', async () => {
  const { folder: data, remove } = dataFolderFor();
  const here = { BURSAR_DATA_DIR: data };
  expect(await runCli(['audit'], here)).toMatchObject({ code: 0 });
  expect(await runCli(['audit'], { ...here, BURSAR_NETWORK: 'mainnet' })).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringMatching(
      /^bursar: the database belongs to sandbox, but BURSAR_NETWORK is mainnet: set BURSAR_NETWORK=sandbox/,
    ),
  });
  expect((await runCli(['chain', 'status'], here)).out).not.toContain('stopped');
  remove();
});

test('the login of the demo merchant, which everybody knows, is made only once the signer has found its own keys', async () => {
  const other = await freshDatabase();
  const { folder: data, remove } = dataFolderFor();
  // the keys of another installation's signer
  await other.db.query({
    text: `insert into account_xpubs (currency, xpub, origin, created_at, confirmed_at) values ('BTC', $1, 'signer', now(), now())`,
    values: [account('BTC', 'regtest').publicExtendedKey],
  });
  const service = startService({ dataFolder: data, environment: { DATABASE_URL: other.url } });
  expect(await service.ended).toBe(1);
  expect(service.output().trim().split('\n').at(-1)).toMatch(/^signer: the database's account keys are another signer's/);
  expect((await other.db.query({ text: 'select username from users' })).rows).toEqual([]);
  await other.drop();
  remove();
});
