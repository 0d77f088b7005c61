// Which network a database belongs to: the first start decides it for good, an older database is recognised by its keys and addresses, and
// a process with another network is refused before anything is written.
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { MIGRATIONS_FOLDER, migrate } from '../../src/store/postgres/migrate.ts';
import { account } from '../keys/vectors.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
let owner: Database;
beforeEach(async () => {
  base = await freshDatabase();
  owner = connect({ url: base.url, role: null, maxConnections: 1, applicationName: 'test' });
});
afterEach(async () => {
  await owner.close();
  await base.drop();
});

const openFor = (network: 'sandbox' | 'regtest' | 'testnet' | 'mainnet') => migrate({ url: base.url, network });
const written = async () => (await base.db.query<{ name: string }>({ text: 'select name from network' })).rows;
const receiveTo = (xpub: string) =>
  owner.query({
    text: `insert into account_xpubs (currency, xpub, origin, created_at) values ('BTC', $1, 'imported', now())`,
    values: [xpub],
  });
const ask = (address: string) =>
  owner.query({
    text: `with m as (insert into merchants (affiliate_id, email, business_name, created_at) values ('aff_x', 'r@example.com', 'X', now()) returning id)
           insert into transactions (id, merchant_id, currency, status, usd_minor, need, rate, rate_at, rate_sources, tolerance_bps, late_payments,
             address, script, address_index, created_at, window_ends_at)
           select 'txn_x', id, 'BTC', 'started', 100, 1000, 1, now(), '[]', 100, 'accept', $1, '\\x0014', 0, now(), now() from m`,
    values: [address],
  });
/** The database as the last version before networks left it, empty. */
async function becomeOlder(): Promise<void> {
  await owner.query({ text: 'drop schema public, ledger, migration cascade' });
  await owner.query({ text: 'create schema public; grant usage on schema public to public' });
  const folder = mkdtempSync(join(tmpdir(), 'bursar-older-'));
  for (const name of readdirSync(MIGRATIONS_FOLDER).filter((one) => one < '0098'))
    copyFileSync(join(MIGRATIONS_FOLDER, name), join(folder, name));
  await migrate({ url: base.url, folder });
  rmSync(folder, { recursive: true, force: true });
}

test('a new database belongs to the network of its first start, and to no other afterwards', async () => {
  await openFor('mainnet');
  await openFor('mainnet');
  await expect(openFor('sandbox')).rejects.toThrow(
    /^the database belongs to mainnet, but BURSAR_NETWORK is sandbox \(or not set\): set BURSAR_NETWORK=mainnet, or use another database \(DATABASE_URL or BURSAR_DATA_DIR\)$/,
  );
  await expect(openFor('testnet')).rejects.toThrow(
    /belongs to mainnet, but BURSAR_NETWORK is testnet: set BURSAR_NETWORK=mainnet/,
  );
  expect(await written()).toEqual([{ name: 'mainnet' }]);
});

test('of two first starts with different networks one is refused', async () => {
  const both = await Promise.allSettled([openFor('sandbox'), openFor('mainnet')]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(await written()).toHaveLength(1);
});

test('the service itself can read it and not change it', async () => {
  await openFor('regtest');
  for (const text of [
    "update network set name = 'mainnet'",
    'delete from network',
    "insert into network (name) values ('mainnet')",
  ])
    await expect(base.db.query({ text }), text).rejects.toThrow(/permission denied/);
});

test('an older database with keys of mainnet is known by them, and a refused start does not even migrate it', async () => {
  await becomeOlder();
  await receiveTo(account('BTC').publicExtendedKey);
  await expect(openFor('sandbox')).rejects.toThrow(/belongs to mainnet, but BURSAR_NETWORK is sandbox/);
  expect((await owner.query({ text: "select 1 where to_regclass('network') is null" })).rowCount).toBe(1);
  await openFor('mainnet');
  expect(await written()).toEqual([{ name: 'mainnet' }]);
});

test.each([
  ['bcrt1qnotours', 'sandbox or regtest', 'sandbox', 'testnet'],
  ['tb1qnotours', 'testnet', 'testnet', 'regtest'],
] as const)('an older database with test keys and %s belongs to %s', async (address, named, right, wrong) => {
  await becomeOlder();
  await receiveTo(account('BTC', 'regtest').publicExtendedKey);
  await ask(address);
  for (const other of ['mainnet', wrong] as const)
    await expect(openFor(other)).rejects.toThrow(`the database belongs to ${named}, but BURSAR_NETWORK is ${other}`);
  await openFor(right);
  expect(await written()).toEqual([{ name: right }]);
});

test('an older database in which nothing tells belongs to the first start', async () => {
  await becomeOlder();
  await openFor('testnet');
  expect(await written()).toEqual([{ name: 'testnet' }]);
});
