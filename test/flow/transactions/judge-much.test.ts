// One decision about 20,000 payments: a price that is paid in so many outputs, a review of so many that the merchant accepts. It is one
// database transaction, one entry and one change of status, so that nobody sees half of it, but it locks no payment; their rows are written
// afterwards, some at a time, and whoever asks in between, or goes on after a crash, finds everything as it was decided.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requiredDepth } from '../../../src/core/confirmations.ts';
import type { Context } from '../../../src/flow/context.ts';
import { resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { readExpansion } from '../../../src/store/transactions/expand.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { longestTurn, workedMs } from '../../support/longest-turn.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { slowness } from '../../support/slowness.ts';

const MINUTE = 60_000;
const MANY = 20_000;
const FEWER = 3_000;
const IN_ONE = 500;
/**
 * Work of this process and of the database together: what a database transaction takes when nothing else runs on the machine. It may take
 * 1,000 there; on a machine that is full, the same work needs half as much again.
 */
const WORK_MS = 1_500;
const LOCKED_MS = 200;
/** The longest time that this thread works without letting anything else run: 100 where nothing else runs, half as much again elsewhere. */
const HELD_MS = 150;
const LOCKING = new Set(['update_judged_payments', 'lock_decided_payments']);

/** What one database transaction took. `locked`: from the first payment that it locked to its end. */
type Spent = { readonly work: number; readonly locked: number; readonly statements: readonly string[] };
let service: ServiceOnDatabase;
let ctx: Context;
let spent: Spent[];
const troubles: unknown[] = [];
/** A worker that has just started. */
const newWorker = () => createJudgeDue(ctx, (_, error) => troubles.push(error));
beforeEach(async () => {
  service = await openServiceOnDatabase();
  spent = [];
  ctx = { ...service.ctx, db: { ...service.db, transaction: measured } };
});
afterEach(async () => {
  expect(troubles.splice(0)).toEqual([]);
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

/** Milliseconds that this thread, and a session of the database, have worked. */
function workMs(pid: number): number {
  return workedMs() + Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1_000_000;
}

async function measured<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  let pid = 0;
  let began = 0;
  let lockedAt: number | null = null;
  const statements: string[] = [];
  const result = await service.db.transaction(async (sql) => {
    const { rows } = await sql.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
    pid = rows[0]?.pid ?? 0;
    began = workMs(pid);
    return work({
      query(statement) {
        statements.push(statement.name ?? '');
        if (LOCKING.has(statement.name ?? '')) lockedAt ??= workMs(pid);
        return sql.query<never>(statement);
      },
    });
  });
  const now = workMs(pid);
  spent.push({ work: now - began, locked: lockedAt === null ? 0 : now - lockedAt, statements });
  return result;
}

/** Runs something: it never holds up this thread for long. */
async function expectTurns(work: () => Promise<unknown>): Promise<void> {
  expect(await longestTurn(work), 'milliseconds held').toBeLessThan(HELD_MS * slowness());
}

const amounts = (count: number): bigint[] => Array.from({ length: count }, (_, n) => BigInt(546 + (n % 400)));
const total = (count: number): bigint => amounts(count).reduce((sum, one) => sum + one);
async function payInDust(id: string, count: number): Promise<void> {
  const all = amounts(count);
  for (let n = 0; n < count; n += IN_ONE) await service.pay(id, all.slice(n, n + IN_ONE));
}
async function judgeAll(): Promise<void> {
  const run = newWorker();
  while (await run());
}
/** A price that is paid in so many outputs, one block before they are deep enough. */
async function splitPrice(count: number): Promise<string> {
  const { transactionId: id } = await service.create(total(count) / 10n);
  await payInDust(id, count);
  await judgeAll();
  await service.mine(requiredDepth('BTC', total(count) / 10n).depth - 1);
  await judgeAll();
  expect(await service.path(id)).toEqual(['started', 'pending']);
  return id;
}
/** A review of so many late payments in suspense. */
async function review(count: number): Promise<string> {
  const { transactionId: id } = await service.create(90_000_00n);
  await service.wait(20 * MINUTE);
  await judgeAll();
  await payInDust(id, count);
  await judgeAll();
  await service.mine(6);
  await judgeAll();
  return id;
}
const accept = (id: string, part: 'excess' | null = null) =>
  resolveTransaction(ctx, { merchantId: service.merchantId, transactionId: id, action: 'accept', part });
async function kept(): Promise<number> {
  const { rows } = await service.admin.query('select count(*)::int as n from payment_decisions');
  return rows[0].n;
}
async function places(id: string): Promise<Record<string, string | number>> {
  const { rows } = await service.admin.query(
    `select count(*)::int as booked, count(*) filter (where counted)::int as counted, sum(in_available)::text as available, sum(in_suspense)::text as suspense
       from payments where transaction_id = $1 and part_key is not null`,
    [id],
  );
  return rows[0];
}
function expectBounded(): void {
  const slow = slowness();
  for (const one of spent) {
    expect(one.work, `milliseconds of work: ${one.statements}`).toBeLessThan(WORK_MS * slow);
    expect(one.locked, `milliseconds of work with locked payments: ${one.statements}`).toBeLessThan(LOCKED_MS * slow);
  }
}

test(`a price that is paid in ${MANY} outputs is credited at once, and no database transaction takes long`, {
  timeout: 300_000,
}, async () => {
  const id = await splitPrice(MANY);
  await service.mine();
  spent = [];
  await expectTurns(judgeAll);
  expectBounded();
  expect(await service.path(id)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  expect(await service.available()).toBe(total(MANY));
  expect(await places(id)).toEqual({ booked: MANY, counted: MANY, available: String(total(MANY)), suspense: '0' });
  expect(spent.filter(({ statements }) => statements.includes('ledger_post_all_with_parts'))).toHaveLength(1);
});

test(`a review of ${MANY} payments is accepted at once, and no database transaction takes long`, {
  timeout: 300_000,
}, async () => {
  const id = await review(MANY);
  spent = [];
  await expectTurns(async () => expect((await accept(id)).status).toBe('succeeded'));
  expect(await service.available()).toBe(total(MANY));
  await expectTurns(judgeAll);
  expectBounded();
  expect(await places(id)).toEqual({ booked: MANY, counted: MANY, available: String(total(MANY)), suspense: '0' });
});

/** Everything that a merchant sees of it, and that nothing is still in suspense. */
async function expectDecided(id: string, count: number): Promise<void> {
  expect((await service.path(id)).at(-1)).toBe('succeeded');
  expect(await service.available()).toBe(total(count));
  expect(await service.balance(`suspense:${id}:BTC`)).toBe(0n);
  const expansion = await readExpansion(service.db, id, new Set(['payments']));
  const payments = JSON.parse(expansion?.payments ?? '[]') as { counted: boolean }[];
  expect([payments.length, payments.every((payment) => payment.counted)]).toEqual([count, true]);
  expect(await service.findings()).toEqual([]);
}

test.each(['a price', 'a review'] as const)(
  '%s of thousands: whatever worker goes on after a crash, all is as decided from the first moment, and is decided once',
  { timeout: 120_000 },
  async (what) => {
    const id = what === 'a price' ? await splitPrice(FEWER) : await review(FEWER);
    if (what === 'a review') await accept(id);
    else {
      await service.mine();
      // reading so many payments is a turn of its own, which only the same worker goes on from
      const worker = newWorker();
      while ((await kept()) === 0) await worker();
    }
    const before = await service.admin.query('select count(*)::int as n, max(id)::text as last from ledger.entry');
    for (let left = FEWER; left > 0; left -= 1_000) {
      expect(await kept()).toBe(left);
      await expectDecided(id, FEWER);
      // each by a worker that knows nothing of it
      expect(await newWorker()()).toBe(true);
    }
    expect(await kept()).toBe(0);
    await expectDecided(id, FEWER);
    await judgeAll();
    await expectDecided(id, FEWER);
    const after = await service.admin.query('select count(*)::int as n, max(id)::text as last from ledger.entry');
    expect(after.rows).toEqual(before.rows);
  },
);

test('a worker that dies while a decision is made leaves nothing of it, and the next one makes it once', {
  timeout: 120_000,
}, async () => {
  const id = await splitPrice(FEWER);
  await service.mine();
  for (const last of ['ledger_post_parts', 'keep_payment_decisions', 'update_transactions']) {
    const dies: Context = {
      ...service.ctx,
      db: {
        ...service.db,
        transaction: (work) =>
          service.db.transaction((sql) =>
            work({
              async query(statement) {
                const result = await sql.query<never>(statement);
                if (statement.name === last) throw Object.assign(new Error('the connection broke'), { severity: 'FATAL' });
                return result;
              },
            }),
          ),
      },
    };
    const run = createJudgeDue(dies, () => undefined);
    await expect(
      (async () => {
        while (await run());
      })(),
      last,
    ).rejects.toThrow('the connection broke');
    expect(await service.available()).toBe(0n);
    expect((await service.path(id)).at(-1)).toBe('pending');
    expect(await service.findings()).toEqual([]);
  }
  await judgeAll();
  await expectDecided(id, FEWER);
});

test('what is lost, paid and decided while the rows are not written yet is decided after them, on what was decided', {
  timeout: 120_000,
}, async () => {
  const { transactionId: id } = await service.create(90_000_00n);
  await service.wait(20 * MINUTE);
  await judgeAll();
  const single = await service.pay(id, [7_001n, 7_002n]);
  await payInDust(id, FEWER);
  await judgeAll();
  await service.mine(6);
  await judgeAll();
  await accept(id);
  expect(await kept()).toBe(FEWER + 2);
  // two of them are double-spent, one more comes, and the merchant decides again, all before a row is written
  await service.admin.query(
    `update payments set state = 'conflicted', height = null, block_hash = null, block_time = null, conflict_txid = 'ff' where txid = $1`,
    [single.facts.txid],
  );
  await service.admin.query('insert into due_marks (transaction_id) values ($1)', [id]);
  await service.pay(id, 9_000n);
  await expect(accept(id)).rejects.toMatchObject({ code: 'not_resolvable' });
  await judgeAll();
  expect(await service.path(id)).toEqual(['started', 'timedout', 'review', 'confirmed', 'succeeded', 'review']);
  expect(await service.available()).toBe(total(FEWER));
  await service.mine(6);
  await judgeAll();
  expect(await service.balance(`suspense:${id}:BTC`)).toBe(9_000n);
  expect((await accept(id)).status).toBe('succeeded');
  expect(await service.available()).toBe(total(FEWER) + 9_000n);
});

test('a merchant who decides while much is due waits for it in short database transactions', { timeout: 120_000 }, async () => {
  const { transactionId: id } = await service.create();
  await service.pay(id, 50_000n);
  await service.mine();
  await judgeAll();
  await payInDust(id, FEWER);
  await service.mine(6);
  spent = [];
  await accept(id, 'excess');
  expect(spent.length).toBeGreaterThan(3);
  expect(await service.available()).toBe(50_000n + total(FEWER));
  await judgeAll();
  expect(await places(id)).toMatchObject({ booked: FEWER + 1, available: String(50_000n + total(FEWER)), suspense: '0' });
});
