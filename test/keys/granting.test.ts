// Addresses are given out once, whatever was restored: by the signer's journal and the database together. A restored dump is a copy of the
// database that was made before; a replica that lost its last seconds is one too. On real PostgreSQL, through the pools of the API.
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import type { Context } from '../../src/flow/context.ts';
import { readReadiness } from '../../src/flow/readiness.ts';
import { openJournal } from '../../src/signer/addresses/given-addresses.ts';
import { JUMP } from '../../src/signer/addresses/granting.ts';
import { type AddressRange, askForRange, takeRange } from '../../src/store/chain/range-requests.ts';
import { readSkipped } from '../../src/store/chain/signer-status.ts';
import { importKey } from '../../src/store/chain/xpubs.ts';
import { keyContext } from './context.ts';
import {
  at,
  BTC,
  copyOf,
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

describe('an address is given once', () => {
  it('after a restored dump, and the database says what it passes over', async () => {
    let signer = await signerOn(database.db);
    const before = await take(poolOn(database.db), 5);
    await signer.close();
    const dump = await copyOf();
    signer = await signerOn(database.db);
    const lost = await take(poolOn(database.db), 35);
    await signer.close();

    const restored = await dump.restore();
    const again = await signerOn(restored);
    const after = await take(poolOn(restored), 30);
    expect(new Set([...before, ...lost, ...after]).size).toBe(70);
    expect(Math.min(...after)).toBeGreaterThan(Math.max(...lost));
    const skipped = await readSkipped(restored);
    expect(skipped).toMatchObject([{ currency: 'BTC', cause: 'database_behind' }]);
    for (const index of lost) expect(index).toBeGreaterThanOrEqual(skipped[0]!.firstIndex);
    for (const index of lost) expect(index).toBeLessThan(skipped[0]!.endIndex);
    const passedOver = /^BTC: address indexes \d+ to \d+ are passed over: they were given out/;
    expect(again.reported).toEqual([expect.stringMatching(passedOver)]);
    // what is wrong with the service is told of the currencies that it has a node of
    const problems = async (currencies: UtxoCode[]) => {
      const { ports, ...context } = keyContext(restored, 'regtest');
      const ctx = { ...context, network: 'regtest', currencies, ports: { ...ports, lightning: null } };
      return (await readReadiness(ctx as unknown as Context, currencies)).problems;
    };
    expect(await problems(['BTC'])).toContainEqual(expect.stringMatching(passedOver));
    expect(await problems([])).not.toContainEqual(expect.stringMatching(passedOver));
  });

  it('after a failover to a replica that lost the last grant only, with API processes that go on with what they have', async () => {
    const first = await signerOn(database.db);
    const pools = [poolOn(database.db), poolOn(database.db), poolOn(database.db)];
    const given = (await Promise.all(pools.map((pool) => take(pool, 7)))).flat();
    await first.close();
    const replica = await copyOf();
    const second = await signerOn(database.db);
    const late = await take(poolOn(database.db), 3);
    await second.close();
    // the old processes keep their ranges in memory; new ones come to the replica
    const restored = await replica.restore();
    await signerOn(restored);
    const kept = await Promise.all(pools.map(async (pool) => (await pool.next()).index));
    const fresh = (await Promise.all([poolOn(restored), poolOn(restored)].map((pool) => take(pool, 25)))).flat();
    const all = [...given, ...late, ...kept, ...fresh];
    expect(new Set(all).size).toBe(all.length);
  });

  it('of an imported key too, also where the restored database does not know the key and it is imported again', async () => {
    const signer = await signerOn(database.db);
    await signer.close();
    const dump = await copyOf();
    const meanwhile = await signerOn(database.db);
    await importKey(database.db, { currency: 'BTC', xpub: LTC, at });
    const before = await take(poolOn(database.db), 15);
    await meanwhile.close();
    const restored = await dump.restore();
    await signerOn(restored);
    await importKey(restored, { currency: 'BTC', xpub: LTC, at });
    const after = await take(poolOn(restored), 15);
    expect(before[0]).toBe(0);
    expect(new Set([...before, ...after]).size).toBe(30);
  });

  it('whoever asks at the same time: many pools, many signers in turn', async () => {
    const all: number[] = [];
    for (let round = 0; round < 3; round++) {
      const signer = await signerOn(database.db);
      const pools = [1, 2, 3, 4].map((ready) => poolOn(database.db, ready));
      all.push(...(await Promise.all(pools.map((pool) => take(pool, 20)))).flat());
      await signer.close();
    }
    expect(new Set(all).size).toBe(240);
  });

  it("when the signer's folder is an older copy: the database wins, with a jump over what it may not know either", async () => {
    const first = await signerOn(database.db);
    await take(poolOn(database.db), 5);
    await first.close();
    const old = await readFile(join(folder, 'given-addresses.json'));
    const second = await signerOn(database.db);
    const known = await take(poolOn(database.db), 50);
    await second.close();
    const said = await nextIndex(database.db);
    await writeFile(join(folder, 'given-addresses.json'), old);
    const third = await signerOn(database.db);
    const [index] = await take(poolOn(database.db), 1);
    expect(index).toBeGreaterThanOrEqual((said as number) + JUMP);
    expect(known).not.toContain(index);
    const [passedOver, ...more] = await readSkipped(database.db);
    expect([passedOver, more]).toMatchObject([{ cause: 'journal_behind', firstIndex: said }, []]);
    expect(passedOver?.endIndex).toBeGreaterThanOrEqual((said as number) + JUMP);
    expect(third.reported).toEqual([expect.stringMatching(/the signer's journal is an older copy/)]);
  });

  it.each([
    ['a minute', 60_000, 20],
    ['a day in which the shop sold as usual', 86_400_000, 3_000],
  ])('when folder and database were both put back by %s: a machine set back to a snapshot', async (_, backMs, orders) => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z');
    const first = await signerOn(database.db, folder, () => nowMs);
    const before = await take(poolOn(database.db, 500), 1_500);
    await first.close();
    const old = await readFile(join(folder, 'given-addresses.json'));
    const dump = await copyOf();
    const second = await signerOn(database.db, folder, () => nowMs);
    nowMs += backMs;
    const lost = await take(poolOn(database.db, 500), orders);
    await second.close();
    await writeFile(join(folder, 'given-addresses.json'), old);
    const restored = await dump.restore();
    const third = await signerOn(restored, folder, () => nowMs);
    const after = await take(poolOn(restored, 500), 100);
    expect(new Set([...before, ...lost, ...after]).size).toBe(before.length + orders + 100);
    expect(third.reported).toEqual([]);
    expect(await readSkipped(restored)).toEqual([]);
  });

  it('when folder and database are both old and the folder is the older one', async () => {
    const first = await signerOn(database.db);
    await take(poolOn(database.db), 5);
    await first.close();
    const old = await readFile(join(folder, 'given-addresses.json'));
    const second = await signerOn(database.db);
    await take(poolOn(database.db), 20);
    await second.close();
    const dump = await copyOf();
    const third = await signerOn(database.db);
    const lost = await take(poolOn(database.db), 40);
    await third.close();
    await writeFile(join(folder, 'given-addresses.json'), old);
    const restored = await dump.restore();
    await signerOn(restored);
    const after = await take(poolOn(restored), 40);
    expect(Math.min(...after)).toBeGreaterThan(Math.max(...lost));
  });

  it('on two machines, set up one after the other from one backup without the journal', async () => {
    const first = await signerOn(database.db);
    await take(poolOn(database.db), 5);
    await first.close();
    const [before, after] = [await copyOf(), await copyOf()];
    const given: number[] = [];
    for (const dump of [before, after]) {
      await rm(join(folder, 'given-addresses.json'));
      const restored = await dump.restore();
      const signer = await signerOn(restored);
      given.push(...(await take(poolOn(restored, 500), 1_500)));
      await signer.close();
    }
    expect(new Set(given).size).toBe(3_000);
  });

  it.each(['missing', 'damaged', 'cut off'])(
    'when the journal is %s: far above what the database says, and it is said',
    async (how) => {
      const first = await signerOn(database.db);
      await take(poolOn(database.db), 5);
      await first.close();
      const said = await nextIndex(database.db);
      const path = join(folder, 'given-addresses.json');
      const text = await readFile(path, 'utf8');
      if (how === 'missing') await rm(path);
      if (how === 'damaged') await writeFile(path, text.replace(/"counter": \d+/, '"counter": 1'));
      if (how === 'cut off') await writeFile(path, text.slice(0, 40));
      const second = await signerOn(database.db);
      const [index] = await take(poolOn(database.db), 1);
      expect(index).toBeGreaterThanOrEqual((said as number) + JUMP);
      expect(second.reported).toEqual([expect.stringMatching(/the signer's journal was lost or damaged/)]);
      expect(await readSkipped(database.db)).toMatchObject([{ cause: 'journal_lost' }]);
      const kept = (await readdir(folder)).filter((name) => name.includes('.damaged-'));
      expect(kept).toHaveLength(how === 'missing' ? 0 : 1);
      // once: the next start knows all
      await second.close();
      const third = await signerOn(database.db);
      expect(third.reported).toEqual([]);
    },
  );

  it('begins where the database says when no signer has given out anything yet, without a jump', async () => {
    await database.db.query({ text: 'update account_xpubs set next_index = 4200' });
    const signer = await signerOn(database.db);
    expect(await take(poolOn(database.db), 1)).toEqual([4200]);
    expect(signer.reported).toEqual([]);
    expect(await readSkipped(database.db)).toEqual([]);
  });

  it('leaves a silent gap where the signer died between its journal and the answer', async () => {
    const first = await signerOn(database.db);
    await take(poolOn(database.db), 10);
    await first.close();
    expect(await askForRange(database.db, { id: 'asked', currency: 'BTC', size: 10 })).toBe(true);
    const from = (await nextIndex(database.db)) as number;
    await (await openJournal(folder, Date.now)).write({ given: [{ xpub: BTC, first: from, end: from + 10 }], request: 'asked' });
    const second = await signerOn(database.db);
    expect(second.reported).toEqual([]);
    const taken = await takeRange(database.db, 'asked');
    expect(taken).toMatchObject({ size: 10 });
    expect((taken as AddressRange).firstIndex).toBeGreaterThanOrEqual(from + 10);
    expect(await takeRange(database.db, 'asked')).toBe('unknown');
  });
});
