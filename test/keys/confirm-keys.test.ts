import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { verifyAddress, verifyAddresses } from '../../src/flow/addresses/check.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { accountsOf } from '../../src/signer/accounts.ts';
import { firstIndexOfNewDatabase } from '../../src/signer/addresses/database-count.ts';
import { compareKeys, mismatchMessage } from '../../src/signer/confirm-keys.ts';
import { importKey, listKeys } from '../../src/store/chain/xpubs.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner, type RunningSigner } from '../support/signer.ts';
import { keyContext } from './context.ts';
import { account } from './vectors.ts';

const at = new Date('2026-01-01T00:00:00Z');
const accounts = accountsOf(new Uint8Array(32).fill(1), 'regtest');
const others = accountsOf(new Uint8Array(32).fill(2), 'regtest');
const ALL = ['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT'];
let database: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());
let signer: RunningSigner;
beforeEach(async () => {
  await forgetKeys();
  signer = await openSigner(database.db);
});
afterEach(() => signer.close());

/** As in a database that knows no key. */
async function forgetKeys(): Promise<void> {
  for (const table of ['address_requests', 'skipped_addresses', 'signer_journal', 'account_xpubs'])
    await database.db.query({ text: `delete from ${table}` });
}

const zero = async (): Promise<number> => 0;

describe('the signer and the stored keys', () => {
  it('gives its keys to a new database and confirms them at each start', async () => {
    expect(await compareKeys(database.db, accounts, at, zero)).toMatchObject({ added: ALL, confirmed: [], mismatched: [] });
    const later = new Date('2026-01-02T00:00:00Z');
    const again = await compareKeys(database.db, accounts, later, zero);
    expect(again).toMatchObject({ added: [], confirmed: ALL, mismatched: [] });
    expect(mismatchMessage(again)).toBeNull();
    for (const key of await listKeys(database.db)) expect(key.confirmedAt).toEqual(later);
  });

  it('stores each key once when two signers start at the same time', async () => {
    await Promise.all([compareKeys(database.db, accounts, at, zero), compareKeys(database.db, accounts, at, zero)]);
    expect(await listKeys(database.db)).toHaveLength(ALL.length);
  });

  it('is loud about a key that was changed in the database, and nothing is derived from it', async () => {
    await compareKeys(database.db, accounts, at, zero);
    const thief = others[0]!.xpub;
    await database.db.query({ text: "update account_xpubs set xpub = $1 where currency = 'BTC'", values: [thief] });
    const comparison = await compareKeys(database.db, accounts, at, zero);
    expect(comparison).toMatchObject({ mismatched: ['BTC'], confirmed: ALL.filter((code) => code !== 'BTC') });
    expect(mismatchMessage(comparison)).toMatch(/BTC.*this signer's seed does not give/);
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 10 });
    await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
  });

  it('begins at other indexes in a database that does not know its keys: no address is shown twice', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signer-'));
    const first = () => firstIndexOfNewDatabase(folder);
    await compareKeys(database.db, accounts, at, first);
    await compareKeys(database.db, accounts, at, first);
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 10 });
    const before = await pool.next();
    expect(before.index).toBe(0);
    // the database is lost, the signer is not
    await forgetKeys();
    await compareKeys(database.db, accounts, at, first);
    const after = await createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 10 }).next();
    expect(after.index).toBeGreaterThanOrEqual(10_000_000);
    expect(after.index).toBeLessThan(10_000_100);
    expect(after.address).not.toBe(before.address);
    await rm(folder, { recursive: true });
  });

  it('of another installation refuses, and takes nothing away from the signer that the keys belong to', async () => {
    await compareKeys(database.db, others, at, zero);
    const before = await listKeys(database.db);
    const comparison = await compareKeys(database.db, accounts, at, zero);
    expect(comparison).toMatchObject({ mismatched: ALL, added: [], foreign: true });
    expect(mismatchMessage(comparison)).toMatch(/another signer's.*nothing was changed/);
    expect(await listKeys(database.db)).toEqual(before);
    // of a currency that no other case asks for: a pool that was left still asks for its next range
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'LTC', { ready: 10 });
    expect((await pool.next()).index).toBe(0);
  });

  it('leaves imported keys alone, and only mentions retired ones of another seed', async () => {
    await compareKeys(database.db, others, at, zero);
    for (const [index, { currency }] of others.entries()) {
      const xpub = account('BTC', 'regtest').deriveChild(index).publicExtendedKey;
      await importKey(database.db, { currency, xpub, at });
    }
    const comparison = await compareKeys(database.db, accounts, at, zero);
    expect(comparison).toEqual({
      confirmed: [],
      added: [],
      imported: ALL,
      mismatched: [],
      retiredMismatched: ALL,
      foreign: false,
    });
    expect(mismatchMessage(comparison)).toBeNull();
  });
});

describe('the self-check of addresses', () => {
  it('knows the addresses of every key that was in use, and no other', async () => {
    await compareKeys(database.db, accounts, at, zero);
    const ctx = keyContext(database.db, 'regtest');
    const pools = (['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT'] as const).map((currency) => ({
      currency,
      pool: createAddressPool(ctx, currency, { ready: 10 }),
    }));
    const early = await Promise.all(
      pools.map(async ({ currency, pool }) => ({ ...(await pool.next()), currency, transactionId: 'txn_1' })),
    );
    await importKey(database.db, { currency: 'BTC', xpub: account('BTC', 'regtest').publicExtendedKey, at });
    const keys = await listKeys(database.db);
    for (const one of early) {
      expect(await verifyAddress(ctx, one, keys)).toBe(true);
      expect(await verifyAddress(ctx, { ...one, index: one.index + 1 }, keys)).toBe(false);
      expect(await verifyAddress(ctx, { ...one, script: one.script.toReversed() }, keys)).toBe(false);
    }
    expect(await verifyAddresses(ctx, 100)).toEqual({ checked: 0, wrong: [] });
  });
});
