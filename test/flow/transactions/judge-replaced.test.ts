// Somebody pays an order in many outputs and replaces that transaction again and again, which costs him little: what was replaced holds up
// nobody, and is neither counted nor read, except for what it says about a replacement being on time.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decide } from '../../../src/flow/transactions/decide.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MOST = 1_000;
const OUTPUTS = 400;
const MINUTE = 60_000;
let service: ServiceOnDatabase;
let troubles: string[];
let read: number;
let run: () => Promise<boolean>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  troubles = [];
  read = 0;
  const counted = (sql: Sql): Sql => ({
    async query(statement) {
      const answer = await sql.query<never>(statement);
      if (statement.name === 'read_changed_payments') read += answer.rows.length;
      return answer;
    },
  });
  const { db } = service;
  const ctx = {
    ...service.ctx,
    db: {
      ...db,
      ...counted(db),
      transaction: <T>(work: (sql: Sql) => Promise<T>) => db.transaction((sql) => work(counted(sql))),
    },
  };
  run = createJudgeDue(ctx, (id, error) => troubles.push(`${id} ${(error as Error).message}`), undefined, MOST);
});
afterEach(async () => {
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

async function judgeAll(): Promise<void> {
  while (await run());
}
async function replace(id: string, sent: Sent, each: bigint): Promise<Sent> {
  const next = await service.pay(
    id,
    Array.from({ length: OUTPUTS }, () => each),
    { inputs: sent.facts.inputs },
  );
  await service.evict(sent);
  return next;
}
const number = async (condition: string): Promise<number> =>
  (await service.admin.query(`select count(*)::int as n from payments where ${condition}`)).rows[0].n;

test('an honest payment is credited however often a stranger has replaced outputs to the same order', async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  let sent = await service.pay(
    transactionId,
    Array.from({ length: OUTPUTS }, () => 600n),
  );
  await judgeAll();
  for (let n = 1; n <= 6; n++) {
    sent = await replace(transactionId, sent, 600n - BigInt(n));
    read = 0;
    await judgeAll();
    // what was replaced just now, what replaces it, and both once more as the judge has written them
    expect(read, `payments read after replacement ${n}`).toBeLessThan(5 * OUTPUTS);
  }
  expect(await number(`state = 'conflicted'`)).toBe(6 * OUTPUTS);
  await service.mine(6);
  await judgeAll();
  expect([(await service.path(transactionId)).at(-1), troubles]).toEqual(['succeeded', []]);
  expect(await service.available()).toBe(50_000n);
});

test('a database that is slow to show what was replaced is not asked more often for that', { timeout: 60_000 }, async () => {
  const slow = { ms: 0 };
  const slowed = (sql: Sql): Sql => ({
    async query(statement) {
      if (statement.name === 'read_payment_versions') await new Promise((resolve) => setTimeout(resolve, slow.ms));
      return sql.query<never>(statement);
    },
  });
  const { ctx, db } = service;
  const transaction = <T>(work: (sql: Sql) => Promise<T>) => db.transaction((sql) => work(slowed(sql)));
  const judging = createJudgeDue({ ...ctx, db: { ...db, ...slowed(db), transaction } }, (id, error) =>
    troubles.push(`${id} ${(error as Error).message}`),
  );
  const { transactionId } = await service.create();
  const outputs = (each: bigint) => Array.from({ length: 1_500 }, () => each);
  const sent = await service.pay(transactionId, outputs(600n));
  while (await judging());
  await service.pay(transactionId, outputs(599n), { inputs: sent.facts.inputs });
  await service.evict(sent);
  // longer than a portion may hold rows
  slow.ms = 410;
  let portions = 0;
  while (await judging()) portions++;
  // what was replaced and what replaces it, a thousand at a time, and what is read before that
  expect(portions).toBeLessThan(12);
});

test('a replacement is on time as far as the largest of what it replaced was, also when that is not read any more', async () => {
  const { transactionId } = await service.create();
  const first = await service.pay(
    transactionId,
    Array.from({ length: OUTPUTS }, () => 125n),
  );
  await judgeAll();
  const second = await replace(transactionId, first, 25n);
  await judgeAll();
  await service.wait(20 * MINUTE);
  await judgeAll();
  await replace(transactionId, second, 150n);
  await judgeAll();
  const { rows } = await service.admin.query(`select sum(on_time_minor)::int as n from payments where state = 'mempool'`);
  expect(rows[0].n).toBe(125 * OUTPUTS);
  await service.mine(6);
  await judgeAll();
  expect((await service.path(transactionId)).slice(0, 2)).toEqual(['started', 'pending']);
  expect(await service.path(transactionId)).not.toContain('review');
});

test('what was replaced and is mined after all is read again, and booked', async () => {
  const { transactionId } = await service.create();
  const first = await service.pay(
    transactionId,
    Array.from({ length: OUTPUTS }, () => 125n),
  );
  await judgeAll();
  const stranger = await service.pay(transactionId, [700n], { inputs: first.facts.inputs });
  await judgeAll();
  await service.evict(stranger);
  await service.mine(6);
  await judgeAll();
  expect((await service.path(transactionId)).at(-1)).toBe('succeeded');
  expect(await service.available()).toBe(50_000n);
});

test('an order whose only payment was replaced by one that pays somebody else waits for payment again', async () => {
  const { transactionId } = await service.create();
  const first = await service.pay(
    transactionId,
    Array.from({ length: OUTPUTS }, () => 125n),
  );
  await judgeAll();
  await service.reorganise([first]);
  await judgeAll();
  expect(await service.path(transactionId)).toEqual(['started', 'pending', 'started']);
  expect((await decide(service.ctx, transactionId))?.status).toBe('started');
});
