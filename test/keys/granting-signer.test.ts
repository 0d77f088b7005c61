// Which signer gives out addresses: one at a time, with keys of its own seed only, and what others see of it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { AddressPool } from '../../src/flow/addresses/pool.ts';
import { readSignerStatus, readSkipped } from '../../src/store/chain/signer-status.ts';
import { importKey } from '../../src/store/chain/xpubs.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { eventually } from '../support/service.ts';
import { openSigner } from '../support/signer.ts';
import {
  at,
  BTC,
  closers,
  database,
  eachWithDatabaseAndFolder,
  folder,
  LTC,
  nextIndex,
  poolOn,
  signerOn,
  take,
} from './granting-setup.ts';

vi.setConfig({ testTimeout: 60_000 });
eachWithDatabaseAndFolder();

/** The index of the next address; null while the pool refuses. */
const answered = async (pool: AddressPool): Promise<number | null> =>
  Promise.resolve(pool.next()).then(
    (one) => one.index,
    () => null,
  );

describe('who gives', () => {
  it('is one signer at a time: a second one waits, and goes on when the first has ended', async () => {
    const copy = await mkdtemp(join(tmpdir(), 'bursar-journal-'));
    closers.push(() => rm(copy, { recursive: true, force: true }));
    const first = await signerOn(database.db);
    const other = connect({ url: database.url, role: 'bursar_app', maxConnections: 2, applicationName: 'second signer' });
    closers.push(() => other.close());
    const second = await signerOn(other, copy);
    expect(second.reported).toEqual([expect.stringMatching(/another signer gives out addresses for this database/)]);
    const before = await take(poolOn(database.db), 15);
    await first.close();
    const after = await take(poolOn(database.db), 15);
    expect(new Set([...before, ...after]).size).toBe(30);
  });

  it('says nothing of indexes that were set aside for a key which was changed at that moment', async () => {
    const signer = await signerOn(database.db);
    for (let round = 0; round < 5; round++) {
      const pool = poolOn(database.db);
      await pool.next();
      // the pool asks for more in the background
      void pool.next();
      await importKey(database.db, { currency: 'BTC', xpub: round % 2 === 0 ? LTC : BTC, at });
    }
    await importKey(database.db, { currency: 'BTC', xpub: BTC, at });
    await take(poolOn(database.db), 5);
    expect(signer.reported).toEqual([]);
    expect(await readSkipped(database.db)).toEqual([]);
  });

  it('says nothing of indexes for two who wait, of a key that is changed between question and answer', async () => {
    const waiting = [poolOn(database.db), poolOn(database.db)];
    for (const pool of waiting) await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
    let isChanged = false;
    const signer = await openSigner(database.db, {
      folder,
      async owns() {
        if (!isChanged) await importKey(database.db, { currency: 'BTC', xpub: LTC, at });
        isChanged = true;
        return true;
      },
    });
    closers.push(signer.close);
    for (const pool of waiting) await eventually('it is answered', async () => (await answered(pool)) !== null);
    await importKey(database.db, { currency: 'BTC', xpub: BTC, at });
    await take(poolOn(database.db), 5);
    expect({ isChanged, reported: signer.reported, skipped: await readSkipped(database.db) }).toEqual({
      isChanged: true,
      reported: [],
      skipped: [],
    });
  });

  it('refuses a key that the database calls its own and that is not', async () => {
    const signer = await openSigner(database.db, { folder, owns: async (_currency, xpub) => xpub !== BTC });
    closers.push(signer.close);
    await expect(poolOn(database.db).next()).rejects.toMatchObject({ code: 'currency_unavailable' });
    expect(signer.reported).toEqual([expect.stringMatching(/the key that the database receives to is not of this seed/)]);
  });

  it('reports through the database whether it runs, and who waits for it', async () => {
    expect(await readSignerStatus(database.db)).toEqual({ runs: false, waiting: [], waitingSinceMs: null });
    const pool = poolOn(database.db);
    await expect(pool.next()).rejects.toMatchObject({
      code: 'currency_unavailable',
      message: expect.stringMatching(/no address is left, and the signer gives out no new ones/),
      retryAfterSeconds: 5,
    });
    // while it stays silent nobody else waits
    const began = performance.now();
    await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
    expect(performance.now() - began).toBeLessThan(1_000);
    await eventually('it is told', async () => (await readSignerStatus(database.db)).waiting.includes('BTC'));
    const signer = await signerOn(database.db);
    await eventually('it is answered', () => answered(pool));
    expect(await readSignerStatus(database.db)).toEqual({ runs: true, waiting: [], waitingSinceMs: null });
    await signer.close();
  });

  it('is not missed while addresses lie ready', async () => {
    const signer = await signerOn(database.db);
    const pool = poolOn(database.db, 50);
    await pool.next();
    await eventually('one more range lies ready', async () => ((await nextIndex(database.db)) as number) >= 100);
    await signer.close();
    expect(new Set(await take(pool, 99)).size).toBe(99);
    await expect(pool.next()).rejects.toMatchObject({ code: 'currency_unavailable' });
    await signerOn(database.db);
    expect(await eventually('it is answered', () => answered(pool))).toBeGreaterThanOrEqual(100);
  });
});
