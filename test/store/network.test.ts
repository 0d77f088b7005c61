// Which network a database belongs to: the first start decides it for good, and a process with another network is refused before anything is
// written.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
beforeEach(async () => {
  base = await freshDatabase();
});
afterEach(() => base.drop());

const openFor = (network: 'sandbox' | 'regtest' | 'testnet' | 'mainnet') => migrate({ url: base.url, network });
const written = async () => (await base.db.query<{ name: string }>({ text: 'select name from network' })).rows;

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
