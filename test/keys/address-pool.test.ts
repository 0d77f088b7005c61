import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import type { DerivedAddress } from '../../src/core/ports.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import { addSignerKey, distrustKey, importKey, listKeys } from '../../src/store/chain/xpubs.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner, type RunningSigner } from '../support/signer.ts';
import { keyContext } from './context.ts';
import { account } from './vectors.ts';

const at = new Date('2026-01-01T00:00:00Z');
const FIRST = account('BTC', 'regtest').publicExtendedKey;
const SECOND = account('BCH', 'regtest').publicExtendedKey; // m/44'/1'/0': any other account will do
let database: Awaited<ReturnType<typeof freshDatabase>>;

let signer: RunningSigner;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  for (const table of ['address_requests', 'skipped_addresses', 'signer_journal', 'account_xpubs'])
    await database.db.query({ text: `delete from ${table}` });
  signer = await openSigner(database.db);
});
afterEach(() => signer.close());

async function take(pool: ReturnType<typeof createAddressPool>, count: number): Promise<DerivedAddress[]> {
  return Promise.all(Array.from({ length: count }, async () => pool.next()));
}
async function keyIndex(currency: UtxoCode): Promise<number | undefined> {
  return (await listKeys(database.db)).find((key) => key.currency === currency && key.retiredAt === null)?.nextIndex;
}

describe('the address pool', () => {
  it('gives 200 parallel callers 200 different addresses, in order of index', async () => {
    await addSignerKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 100 });
    const given = await take(pool, 200);
    expect(new Set(given.map((one) => one.address)).size).toBe(200);
    expect(given.map((one) => one.index).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, index) => index));
    const deriver = createAddressDerivers('regtest').of('BTC', FIRST);
    for (const one of given) expect(deriver.derive(one.index)).toEqual(one);
  });

  it('never gives an index twice over many pools, as of many processes, and after they end', async () => {
    await addSignerKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const ctx = keyContext(database.db, 'regtest');
    const rounds = await Promise.all([1, 2, 3, 4].map((ready) => take(createAddressPool(ctx, 'BTC', { ready }), 50)));
    const later = await take(createAddressPool(ctx, 'BTC', { ready: 10 }), 50);
    const all = [...rounds.flat(), ...later].map((one) => one.index);
    expect(new Set(all).size).toBe(250);
    expect(await keyIndex('BTC')).toBeGreaterThanOrEqual(250);
  });

  it('answers at once, without waiting, while it has indexes at hand', async () => {
    await addSignerKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 100 });
    await pool.next();
    expect(pool.next()).not.toBeInstanceOf(Promise);
  });

  it('refuses with currency_unavailable when there is no key', async () => {
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'LTC', { ready: 100 });
    await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
  });

  it("derives nothing from a signer's key that the signer does not know any more", async () => {
    await addSignerKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const [key] = await listKeys(database.db);
    await distrustKey(database.db, key!.id);
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 100 });
    await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
  });

  it('refuses loudly a stored key of another network', async () => {
    await addSignerKey(database.db, { currency: 'BTC', xpub: account('BTC').publicExtendedKey, at });
    const pool = createAddressPool(keyContext(database.db, 'regtest'), 'BTC', { ready: 100 });
    await expect(pool.next()).rejects.toMatchObject({ name: 'AccountKeyProblem', fault: 'wrong-network' });
  });

  it('turns to an imported key within two seconds, and each key keeps its own index', async () => {
    let nowMs = 1_000_000;
    const derivers = createAddressDerivers('regtest');
    await addSignerKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const pool = createAddressPool(
      keyContext(database.db, 'regtest', () => nowMs),
      'BTC',
      { ready: 10 },
    );
    expect((await take(pool, 3)).map((one) => one.index)).toEqual([0, 1, 2]);
    expect(await importKey(database.db, { currency: 'BTC', xpub: SECOND, at })).toMatchObject({ outcome: 'replaced' });
    nowMs += 2_000;
    const imported = await take(pool, 3);
    expect(imported).toEqual([0, 1, 2].map((index) => derivers.of('BTC', SECOND).derive(index)));

    expect(await importKey(database.db, { currency: 'BTC', xpub: FIRST, at })).toMatchObject({ outcome: 'replaced' });
    nowMs += 2_000;
    const again = await pool.next();
    expect(again.index).toBeGreaterThanOrEqual(10);
    expect(again).toEqual(derivers.of('BTC', FIRST).derive(again.index));
  });
});

describe('a key that is set above what lies ready', () => {
  it('gives none of it any more within two seconds', async () => {
    let nowMs = 1_000_000;
    await importKey(database.db, { currency: 'BTC', xpub: FIRST, at });
    const ctx = keyContext(database.db, 'regtest', () => nowMs);
    const pool = createAddressPool(ctx, 'BTC', { ready: 50 });
    expect((await pool.next()).index).toBe(0);
    expect(await importKey(database.db, { currency: 'BTC', xpub: FIRST, at, start: 1_000 })).toMatchObject({
      outcome: 'in_use',
      key: { nextIndex: 1_000 },
    });
    nowMs += 2_000;
    expect((await pool.next()).index).toBe(1_000);
  });
});

describe('importing a key', () => {
  it('says what it did, and does not take a key that serves another currency', async () => {
    const key = { currency: 'BTC', xpub: FIRST, at } as const;
    expect(await importKey(database.db, key)).toMatchObject({ outcome: 'first', key: { nextIndex: 0, origin: 'imported' } });
    expect(await importKey(database.db, key)).toMatchObject({ outcome: 'in_use' });
    expect(await importKey(database.db, { ...key, currency: 'LTC' })).toEqual({ outcome: 'of_other_currency', currency: 'BTC' });
    expect(await importKey(database.db, { ...key, xpub: SECOND })).toMatchObject({ outcome: 'replaced' });
    expect(await importKey(database.db, { ...key, currency: 'BCH' })).toMatchObject({ outcome: 'of_other_currency' });
  });

  it('leaves one key in use when many imports race', async () => {
    const keys = Array.from({ length: 8 }, (_, index) => account('BTC', 'regtest').deriveChild(index).publicExtendedKey);
    await Promise.all(keys.map((xpub) => importKey(database.db, { currency: 'BTC', xpub, at })));
    const stored = await listKeys(database.db);
    expect(stored).toHaveLength(8);
    expect(stored.filter((key) => key.retiredAt === null)).toHaveLength(1);
  });
});
