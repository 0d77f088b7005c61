// A transaction that somebody pays in thousands of outputs: judged in portions, each a separate database transaction with other work in
// between; one entry for what a portion books, of which a single payment can be reversed; and with the next payment only what has changed
// is read.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MINUTE = 60_000;
const DUST = 5_000;
let service: ServiceOnDatabase;
const troubles: unknown[] = [];
/** Of each database transaction how many payments it read and wrote. */
let portions: { read: number; written: number }[];
let run: () => Promise<boolean>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  portions = [];
  run = createJudgeDue({ ...service.ctx, db: { ...service.db, transaction: watched } }, (_, error) => troubles.push(error));
});
afterEach(async () => {
  expect(troubles.splice(0)).toEqual([]);
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

function watched<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const portion = { read: 0, written: 0 };
  portions.push(portion);
  return service.db.transaction((sql) =>
    work({
      async query(statement) {
        const result = await sql.query<never>(statement);
        if (statement.name === 'read_changed_payments') portion.read += result.rowCount ?? 0;
        if (statement.name === 'update_judged_payments') portion.written += result.rowCount ?? 0;
        return result;
      },
    }),
  );
}
async function judgeAll(): Promise<typeof portions> {
  portions = [];
  while (await run());
  return portions;
}
const dust = (count: number): bigint[] => Array.from({ length: count }, (_, n) => BigInt(600 + (n % 400)));
async function bookedOf(id: string): Promise<{ payments: number; entries: number; parts: number }> {
  const { rows } = await service.admin.query(
    `select (select count(*)::int from payments where transaction_id = $1 and part_key is not null) as payments,
            count(distinct e.id)::int as entries, count(*)::int as parts
       from ledger.entry e join ledger.part d on d.entry_id = e.id where e.transaction_id = $1`,
    [id],
  );
  return rows[0];
}
async function paid(): Promise<string> {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await judgeAll();
  return transactionId;
}

test('thousands of extra payments are noted and booked in portions, and others are decided in between', {
  timeout: 120_000,
}, async () => {
  const id = await paid();
  await service.pay(id, dust(DUST));
  const other = await service.create();
  await service.pay(other.transactionId, 50_000n);
  await run();
  expect(await service.path(other.transactionId), 'it did not wait for the others').toEqual(['started', 'pending']);
  const noted = await judgeAll();
  await service.mine();
  const booked = await judgeAll();
  for (const portion of [...noted, ...booked]) expect(portion.written).toBeLessThanOrEqual(1_001);
  expect(noted.length + booked.length).toBeGreaterThan(4);
  const { payments, entries, parts } = await bookedOf(id);
  expect([payments, parts]).toEqual([DUST + 1, DUST + 1]);
  // one for each portion that books, which are smaller on a slow machine
  expect(entries).toBeLessThanOrEqual(booked.length + 1);
  const { rows } = await service.admin.query(
    `select count(*)::int as n from events where object_id = $1 and type = 'transaction.extra_payment'`,
    [id],
  );
  expect(rows[0].n).toBe(DUST);

  await service.pay(id, 700n);
  await judgeAll();
  await service.pay(id, 701n);
  expect(await judgeAll(), 'only what has changed is read: it, and the one before it').toEqual([{ read: 2, written: 1 }]);
  expect((await service.row(id)).crypto_received).toBe(String(51_401n + dust(DUST).reduce((sum, one) => sum + one)));
});

test('a single one of thousands that is lost is taken back alone, and what is lost of the price asks for all of them', {
  timeout: 120_000,
}, async () => {
  const { transactionId: id } = await service.create();
  const price = await service.pay(id, 50_000n);
  await service.mine();
  await judgeAll();
  await service.pay(id, dust(DUST));
  await service.mine();
  await judgeAll();
  const single = await service.pay(id, [901n, 902n]);
  await service.mine();
  await judgeAll();
  const suspense = await service.balance(`suspense:${id}:BTC`);
  await service.reorganise([single]);
  await judgeAll();
  expect(await service.balance(`suspense:${id}:BTC`)).toBe(suspense - 1_803n);
  const { rows } = await service.admin.query(
    `select d.key, d.amount, d.reverses from ledger.part d join ledger.entry e on e.id = d.entry_id where e.kind = 'deposit_lost' order by d.key`,
  );
  expect(rows).toEqual(
    [901n, 902n].map((amount, vout) => ({
      key: `reorg:btc:${single.facts.txid}:${vout}:1`,
      amount: String(-amount),
      reverses: `dep:btc:${single.facts.txid}:${vout}`,
    })),
  );
  await takeBack(price);
  await judgeAll();
  expect(await service.path(id)).toEqual(['started', 'pending', 'confirmed', 'succeeded', 'review']);
  expect(await service.available()).toBe(0n);
});

/** Somebody else has spent what this payment did. */
async function takeBack(sent: Sent): Promise<void> {
  await service.admin.query(
    `update payments set state = 'conflicted', height = null, block_hash = null, block_time = null, conflict_txid = 'ff' where txid = $1`,
    [sent.facts.txid],
  );
  await service.admin.query('insert into due_marks (transaction_id) select transaction_id from payments where txid = $1', [
    sent.facts.txid,
  ]);
}

test('late ones, and a price that is paid in thousands of outputs, end as a few would', { timeout: 120_000 }, async () => {
  const late = await service.create();
  const split = await service.create();
  await service.pay(split.transactionId, dust(DUST));
  await service.wait(17 * MINUTE);
  await judgeAll();
  await service.pay(late.transactionId, dust(DUST));
  await judgeAll();
  await service.mine(7);
  await judgeAll();
  const total = dust(DUST).reduce((sum, one) => sum + one);
  expect(await service.path(split.transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  expect(await service.path(late.transactionId)).toEqual(['started', 'timedout', 'review', 'confirmed', 'succeeded']);
  expect(await service.available()).toBe(50_000n + total);
  expect(await service.balance(`suspense:${split.transactionId}:BTC`)).toBe(total - 50_000n);
  const { merchantId } = service;
  await resolveTransaction(service.ctx, {
    merchantId,
    transactionId: split.transactionId,
    action: 'accept',
    part: 'excess',
  });
  expect(await service.available()).toBe(2n * total);
});
