// The judge is at work on a transaction of thousands of payments while the watcher of the same chain records blocks with the same payments:
// until the judge writes their rows, which is the last thing it does and few at a time, the watcher waits for nothing. The judge is stopped
// right before that, and goes on when the watcher is through.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MINUTE = 60_000;
const COUNT = 3_000;
const AT_ONCE = 1_000;
/** What locks payments: nothing but a commit comes after the first and the last of them. */
const LOCKING = new Set(['update_judged_payments', 'lock_decided_payments']);
const AFTER_LOCKING = new Set([...LOCKING, 'write_payment_decisions', 'are_payment_decisions_kept']);

let service: ServiceOnDatabase;
let ctx: Context;
let run: () => Promise<boolean>;
/** What the watcher does while the judge holds what it holds; how often the judge was stopped. */
let meanwhile: (() => Promise<unknown>)[];
let stops: number;
const troubles: unknown[] = [];
beforeEach(async () => {
  service = await openServiceOnDatabase();
  meanwhile = [];
  stops = 0;
  ctx = { ...service.ctx, db: { ...service.db, transaction: stopped } };
  run = createJudgeDue(ctx, (_, error) => troubles.push(error));
});
afterEach(async () => {
  expect(troubles.splice(0)).toEqual([]);
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

async function watcherGoesOn(): Promise<void> {
  const next = meanwhile.shift();
  if (next === undefined) return;
  stops += 1;
  await next();
}

/** Stops before payments are locked, or at the end where none are. */
function stopped<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  return service.db.transaction(async (sql) => {
    let isLocking = false;
    const result = await work({
      async query(statement) {
        const name = statement.name ?? '';
        if (LOCKING.has(name) && !isLocking) {
          await watcherGoesOn();
          isLocking = true;
        }
        if (isLocking) expect(AFTER_LOCKING, 'after payments are locked').toContain(name);
        const answer = await sql.query<never>(statement);
        if (LOCKING.has(name)) expect(answer.rowCount).toBeLessThanOrEqual(AT_ONCE);
        return answer;
      },
    });
    if (!isLocking) await watcherGoesOn();
    return result;
  });
}

const amounts = Array.from({ length: COUNT }, (_, n) => BigInt(546 + (n % 400)));
const TOTAL = amounts.reduce((sum, one) => sum + one);
async function judgeAll(): Promise<void> {
  while (await run());
}
async function expectAllBooked(id: string, { available }: { readonly available: bigint }): Promise<void> {
  expect(await service.available()).toBe(available);
  const { rows } = await service.admin.query(
    `select state, count(*)::int as n, count(part_key)::int as booked from payments where transaction_id = $1 group by state`,
    [id],
  );
  expect(rows).toEqual([{ state: 'mined', n: COUNT, booked: COUNT }]);
}

test('a block with all payments of a price is recorded while they are noted, credited and written', {
  timeout: 60_000,
}, async () => {
  const { transactionId: id } = await service.create(TOTAL / 10n);
  await service.pay(id, amounts);
  // noted: in three portions; the block comes between the first of them and its rows
  meanwhile = [() => service.mine(2), () => service.mine(), () => service.wait(MINUTE)];
  await judgeAll();
  expect([stops, await service.path(id)]).toEqual([3, ['started', 'pending', 'confirmed', 'succeeded']]);
  await expectAllBooked(id, { available: TOTAL });
});

test('blocks come, and one is replaced, while thousands are credited and their rows follow', { timeout: 60_000 }, async () => {
  const { transactionId: id } = await service.create(TOTAL / 10n);
  await service.pay(id, amounts);
  await service.mine(2);
  await judgeAll();
  await service.mine();
  meanwhile = Array.from({ length: 5 }, (_, n) => () => (n === 2 ? service.reorganise([]) : service.mine()));
  await judgeAll();
  expect(stops).toBe(5);
  await expectAllBooked(id, { available: TOTAL });
});

test('the block that takes everything back is recorded while it is credited, and the judge takes it back in portions', {
  timeout: 60_000,
}, async () => {
  const { transactionId: id } = await service.create(TOTAL / 10n);
  await service.pay(id, amounts);
  await service.mine(2);
  await judgeAll();
  await service.mine();
  meanwhile = [() => service.vanish('BTC', 3)];
  await judgeAll();
  expect([stops, (await service.path(id)).at(-1)]).toEqual([1, 'succeeded']);
  await service.wait(11 * MINUTE);
  meanwhile = [() => service.mine()];
  await judgeAll();
  expect([stops, (await service.path(id)).at(-1), await service.available()]).toEqual([2, 'review', 0n]);
});

test('a block is recorded while the merchant accepts thousands of payments', { timeout: 60_000 }, async () => {
  const { transactionId: id } = await service.create(90_000_00n);
  await service.wait(20 * MINUTE);
  await judgeAll();
  await service.pay(id, amounts);
  await judgeAll();
  await service.mine(6);
  await judgeAll();
  meanwhile = [() => service.mine(), () => service.mine()];
  const { merchantId } = service;
  await resolveTransaction(ctx, { merchantId, transactionId: id, action: 'accept', part: null });
  await judgeAll();
  expect(stops).toBe(2);
  await expectAllBooked(id, { available: TOTAL });
});
