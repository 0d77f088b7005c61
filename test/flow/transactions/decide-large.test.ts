// Calls that decide on an order which strangers paid in very many outputs: whatever comes at once, only one of them reads its payments, and
// what its status refuses reads none.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { decide } from '../../../src/flow/transactions/decide.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MANY = 2_500;
const CALLS = 30;
let service: ServiceOnDatabase;
let ctx: Context;
/** Readings of payments: how many in all, how many are running, and how many ran at once. */
let readings: { all: number; running: number; most: number };
beforeEach(async () => {
  service = await openServiceOnDatabase();
  readings = { all: 0, running: 0, most: 0 };
  const { db } = service;
  const counted = (sql: Sql): Sql => ({
    async query(statement) {
      const isReading = statement.name === 'read_changed_payments';
      if (isReading) {
        readings.all += 1;
        readings.running += 1;
        readings.most = Math.max(readings.most, readings.running);
      }
      try {
        return await sql.query<never>(statement);
      } finally {
        if (isReading) readings.running -= 1;
      }
    },
  });
  ctx = { ...service.ctx, db: { ...db, ...counted(db), transaction: (work) => db.transaction((sql) => work(counted(sql))) } };
});
afterEach(() => service.drop());

const dust = Array.from({ length: MANY }, (_, n) => BigInt(600 + (n % 400)));
async function answers(call: () => Promise<{ status: string }>): Promise<Record<string, number>> {
  const count: Record<string, number> = {};
  const all = Array.from({ length: CALLS }, () =>
    call().then(
      ({ status }) => status,
      (error) => error.code ?? String(error),
    ),
  );
  for (const answer of await Promise.all(all)) count[answer] = (count[answer] ?? 0) + 1;
  return count;
}

test('of many cancels at once one is decided at a time, and those for which there is no line are refused', async () => {
  const { transactionId } = await service.create(50_000_00n);
  await service.pay(transactionId, dust);
  const {
    cancelled,
    review = 0,
    ...refused
  } = await answers(() => cancelTransaction(ctx, { merchantId: service.merchantId, transactionId }));
  expect([cancelled, review, readings.most]).toEqual([1, 0, 1]);
  expect(Object.keys(refused).sort()).toEqual(['overloaded', 'transaction_not_cancellable']);
  expect(await service.path(transactionId)).toEqual(['started', 'pending', 'cancelled', 'review']);
});

test('what the status refuses, and what another merchant asks for, reads no payment', async () => {
  const { transactionId } = await service.create(50_000_00n);
  await service.pay(transactionId, dust);
  await service.judge();
  const { merchantId } = service;
  expect(await answers(() => resolveTransaction(ctx, { merchantId, transactionId, action: 'accept', part: null }))).toEqual({
    not_resolvable: CALLS,
  });
  expect(await answers(() => resolveTransaction(ctx, { merchantId, transactionId, action: 'decline', part: null }))).toEqual({
    not_resolvable: CALLS,
  });
  expect(await answers(() => resolveTransaction(ctx, { merchantId, transactionId, action: 'accept', part: 'excess' }))).toEqual({
    not_resolvable: CALLS,
  });
  await service.mine();
  await service.judge();
  expect(await answers(() => cancelTransaction(ctx, { merchantId, transactionId }))).toEqual({
    transaction_not_cancellable: CALLS,
  });
  expect(await answers(() => cancelTransaction(ctx, { merchantId: merchantId + 100n, transactionId }))).toEqual({
    transaction_not_found: CALLS,
  });
  expect(readings.all).toBe(0);
});

test('one with more payments than are decided is refused in words; the limit itself is decided', async () => {
  const { transactionId } = await service.create(50_000_00n);
  await service.pay(transactionId, dust);
  const of = { merchantId: service.merchantId, refusal: 'not_resolvable' } as const;
  await expect(decide(ctx, transactionId, { ...of, mostPayments: MANY - 1 })).rejects.toMatchObject({
    code: 'not_resolvable',
    message: `The transaction has more than ${MANY - 1} payments, which are not decided: the operator of this server must look at it.`,
  });
  expect(readings.all).toBe(0);
  expect((await decide(ctx, transactionId, { ...of, mostPayments: MANY }))?.status).toBe('pending');
});

test('with an idempotency key, which holds a connection, a large one is not waited for', async () => {
  const { transactionId } = await service.create(50_000_00n);
  await service.pay(transactionId, dust);
  const keyed: Context = { ...ctx, afterwards: () => undefined };
  const first = cancelTransaction(ctx, { merchantId: service.merchantId, transactionId });
  while (readings.all === 0) await new Promise(setImmediate);
  await expect(cancelTransaction(keyed, { merchantId: service.merchantId, transactionId })).rejects.toMatchObject({
    code: 'overloaded',
  });
  expect((await first).status).toBe('cancelled');
});
