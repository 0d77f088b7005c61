// Several workers, transactions and callers at the same time, and very many payments: each is decided once.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cancelTransaction, reconsider, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterEach(async () => {
  expect(await service.findings()).toEqual([]);
});
afterAll(() => service.drop());

const resolve = (transactionId: string, action: 'accept' | 'decline', part: 'excess' | null = null) =>
  resolveTransaction(service.ctx, { merchantId: service.merchantId, transactionId, action, part });
const cancel = (transactionId: string) => cancelTransaction(service.ctx, { merchantId: service.merchantId, transactionId });

describe('at once', () => {
  test('ten workers decide the same transaction: one credit', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    await service.mine();
    const before = await service.available();
    await Promise.all(Array.from({ length: 10 }, () => reconsider(service.ctx, transactionId)));
    expect(await service.available()).toBe(before + 50_000n);
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  });

  test('many transactions of one merchant at once: each is credited, none waits for ever', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, (_, n) => service.create(50_00n, n % 2 === 0 ? 'BTC' : 'LTC')));
    for (const { transactionId, currency } of made) await service.pay(transactionId, 50_000n, { currency: currency as 'BTC' });
    await service.mine();
    await service.mine(2, 'LTC');
    const before = [await service.available(), await service.available('LTC')] as const;
    await Promise.all(made.map(({ transactionId }) => reconsider(service.ctx, transactionId)));
    expect([await service.available(), await service.available('LTC')]).toEqual([before[0] + 500_000n, before[1] + 500_000n]);
  });

  test('cancel against the last confirmation: the row lock decides, and only one of them happens', async () => {
    let cancelled = 0;
    for (let n = 0; n < 12; n++) {
      const { transactionId } = await service.create();
      await service.pay(transactionId, 50_000n);
      await service.judge();
      const [word] = await Promise.allSettled([
        cancel(transactionId),
        service.mine().then(() => reconsider(service.ctx, transactionId)),
      ]);
      await service.judge();
      const path = await service.path(transactionId);
      if (word.status === 'fulfilled') {
        cancelled++;
        expect(path).toEqual(['started', 'pending', 'cancelled', 'review']);
      } else {
        expect(word.reason).toMatchObject({ code: 'transaction_not_cancellable' });
        expect(path).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
      }
    }
    expect(cancelled).toBeLessThanOrEqual(12);
  });

  test('a worker that dies in the middle has done nothing; the next one does it once', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    await service.mine();
    const before = await service.available();
    const dying = {
      ...service.ctx,
      db: {
        ...service.db,
        transaction: <T>(work: (sql: typeof service.db) => Promise<T>) =>
          service.db.transaction(async (sql) => {
            await work(sql as typeof service.db);
            await sql.query({ text: 'select pg_terminate_backend(pg_backend_pid())' });
            throw new Error('unreachable');
          }),
      },
    };
    await expect(reconsider(dying as never, transactionId)).rejects.toThrow();
    expect(await service.path(transactionId)).toEqual(['started']);
    expect(await service.available()).toBe(before);
    await service.judge();
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await service.available()).toBe(before + 50_000n);
  });
});

test('a thousand dust payments on one transaction are judged in seconds, and the next one as fast as ever', {
  timeout: 60_000,
}, async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  for (let n = 0; n < 10; n++)
    await service.pay(
      transactionId,
      Array.from({ length: 100 }, (_, at) => BigInt(600 + n * 100 + at)),
    );
  const began = performance.now();
  await service.judge();
  await service.mine();
  await service.judge();
  const flood = performance.now() - began;
  const { rows } = await service.admin.query(
    'select count(*)::int as n from payments where transaction_id = $1 and part_key is not null',
    [transactionId],
  );
  expect(rows[0].n).toBe(1001);
  await service.pay(transactionId, 999n);
  const again = performance.now();
  await reconsider(service.ctx, transactionId);
  const next = performance.now() - again;
  expect(flood).toBeLessThan(20_000);
  expect(next).toBeLessThan(1_000);
  const before = await service.available();
  await resolve(transactionId, 'accept', 'excess').catch((error) => expect(error).toMatchObject({ code: 'not_resolvable' }));
  // together they are worth more than 1,000 USD
  await service.mine(3);
  await service.judge();
  await resolve(transactionId, 'accept', 'excess');
  expect(await service.available()).toBeGreaterThan(before);
});
