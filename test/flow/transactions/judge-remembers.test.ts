// What a worker keeps of a large transaction from one verdict to the next, and when it forgets it: another worker's writes are read again, a
// verdict that failed and a database that may be another one make it forget all, and of many transactions only so much is kept.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createKnownCases } from '../../../src/store/transactions/known-payments.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const DUST = 300;
let service: ServiceOnDatabase;
const troubles: unknown[] = [];
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(async () => {
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

/** A worker, how many payments it has read, and what it fails at. */
function openWorker() {
  const worker = { reads: 0, failsAt: '' };
  const watched = (sql: Sql): Sql => ({
    async query(statement) {
      const result = await sql.query<never>(statement);
      if (statement.name === 'read_changed_payments') worker.reads += result.rowCount ?? 0;
      if (statement.name === worker.failsAt) throw Object.assign(new Error('refused'), { severity: 'ERROR' });
      return result;
    },
  });
  const db = {
    ...service.db,
    ...watched(service.db),
    transaction: <T>(work: (sql: Sql) => Promise<T>) => service.db.transaction((sql) => work(watched(sql))),
  };
  const ctx: Context = { ...service.ctx, db };
  const run = createJudgeDue(ctx, (_, error) => troubles.push(error));
  return {
    /** Judges until nothing is due; returns how many payments it read for that. */
    async judge(): Promise<number> {
      worker.reads = 0;
      while (await run());
      return worker.reads;
    },
    failAt(statement: string): void {
      worker.failsAt = statement;
    },
  };
}

/** An order that is paid, and then in dust: large, so that its payments are kept. */
async function large(worker: ReturnType<typeof openWorker>): Promise<string> {
  const { transactionId: id } = await service.create();
  await service.pay(id, 50_000n);
  await service.mine();
  await worker.judge();
  await service.pay(
    id,
    Array.from({ length: DUST }, (_, n) => BigInt(600 + n)),
  );
  await worker.judge();
  await service.pay(id, 700n);
  expect(await worker.judge(), 'all but what it wrote last is known').toBeLessThanOrEqual(DUST + 2);
  await service.pay(id, 701n);
  expect(await worker.judge()).toBe(2);
  return id;
}

test('what another worker has written is read again, and nothing else', async () => {
  const [first, second] = [openWorker(), openWorker()];
  const id = await large(first);
  await service.mine(6);
  // everything is booked by the other one, which has to read it all
  expect(await second.judge()).toBeGreaterThanOrEqual(DUST);
  const booked = await service.balance(`suspense:${id}:BTC`);
  const entries = async () => (await service.admin.query('select count(*)::int as n from ledger.entry')).rows;
  const before = await entries();
  await service.admin.query('insert into due_marks (transaction_id) values ($1)', [id]);
  expect(await first.judge(), 'each row has another version').toBe(DUST + 3);
  expect([await entries(), await service.balance(`suspense:${id}:BTC`)]).toEqual([before, booked]);
  await service.admin.query('insert into due_marks (transaction_id) values ($1)', [id]);
  expect(await first.judge()).toBe(0);
});

test('a verdict that the database refused makes the worker forget the transaction', async () => {
  const worker = openWorker();
  const id = await large(worker);
  await service.pay(id, 702n);
  worker.failAt('update_judged_payments');
  await worker.judge();
  expect(troubles.splice(0)).toHaveLength(1);
  worker.failAt('');
  await service.admin.query(`update set_aside set rests_until = '-infinity'`);
  expect(await worker.judge(), 'all is read again').toBe(DUST + 4);
  expect((await service.row(id)).crypto_received).toBe(String(50_000n + 700n + 701n + 702n + dust()));
});
const dust = (): bigint => Array.from({ length: DUST }, (_, n) => BigInt(600 + n)).reduce((sum, one) => sum + one);

test('sessions that broke, behind which another database may answer, make it forget all', async () => {
  const worker = openWorker();
  const id = await large(worker);
  service.db.identity.sessionLost();
  await service.pay(id, 702n);
  expect(await worker.judge()).toBe(DUST + 4);
  await service.pay(id, 703n);
  expect(await worker.judge()).toBe(2);
});

test('of many transactions those that were decided last are kept, together at most so many payments', () => {
  const most = 1_000;
  const cases = createKnownCases(most);
  const kept = new Map<string, number>();
  for (let n = 0; n < 200; n++) {
    const id = `txn_${n % 37}`;
    const known = cases.of(id);
    for (let at = known.size; at < 50 + ((n * 7) % 100); at++) known.set(at, {} as never);
    kept.delete(id);
    kept.set(id, known.size);
  }
  // the newest of them, as many as fit; asked from the newest on, so that asking drops none of them
  const newest = [...kept].reverse();
  const upTo = (n: number): number => newest.slice(0, n + 1).reduce((sum, [, size]) => sum + size, 0);
  const fitting = newest.filter((_, n) => upTo(n) <= most);
  expect(fitting.length).toBeGreaterThan(5);
  const sizes = fitting.map(([id]) => cases.of(id).size);
  expect(sizes).toEqual(fitting.map(([, size]) => size));
  expect(sizes.reduce((total, size) => total + size, 0)).toBeLessThanOrEqual(most);
  for (const [id] of kept) if (!fitting.some(([name]) => name === id)) expect(cases.of(id).size, id).toBe(0);
});
