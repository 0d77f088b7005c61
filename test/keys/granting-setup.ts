// A database with one key of the signer and a folder for its journal, for the tests of how addresses are given out; with signers and pools
// on them, and copies as a dump or a replica holds them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type AddressPool, createAddressPool } from '../../src/flow/addresses/pool.ts';
import { addSignerKey, listKeys } from '../../src/store/chain/xpubs.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { copyDatabase, freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { openSigner, type RunningSigner } from '../support/signer.ts';
import { keyContext } from './context.ts';
import { account } from './vectors.ts';

export const at = new Date('2026-01-01T00:00:00Z');
export const BTC = account('BTC', 'regtest').publicExtendedKey;
export const LTC = account('BCH', 'regtest').publicExtendedKey;
export let database: TestDatabase;
/** The signer's. */
export let folder: string;
export const closers: (() => Promise<unknown>)[] = [];

/** Registers the hooks; `database` and `folder` belong to the running test. */
export function eachWithDatabaseAndFolder(): void {
  beforeEach(async () => {
    database = await freshDatabase();
    folder = await mkdtemp(join(tmpdir(), 'bursar-journal-'));
    await addSignerKey(database.db, { currency: 'BTC', xpub: BTC, at });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });
}

export async function signerOn(db: Database, where = folder, now = Date.now): Promise<RunningSigner> {
  const signer = await openSigner(db, { folder: where, now });
  let open: (() => Promise<void>) | null = signer.close;
  const close = async (): Promise<void> => {
    const closing = open;
    open = null;
    await closing?.();
  };
  closers.push(close);
  return { ...signer, close };
}
export const poolOn = (db: Database, ready = 10): AddressPool => createAddressPool(keyContext(db, 'regtest'), 'BTC', { ready });
export async function take(pool: AddressPool, count: number): Promise<number[]> {
  const given = await Promise.all(Array.from({ length: count }, async () => pool.next()));
  return given.map((one) => one.index);
}
/** What a dump or a replica of now holds. */
export async function copyOf(): Promise<{ restore(): Promise<Database> }> {
  const copy = await copyDatabase(database.url);
  closers.push(copy.drop);
  return { restore: async () => copy.db };
}
export const nextIndex = async (db: Database) => (await listKeys(db)).find((key) => key.currency === 'BTC')?.nextIndex;
