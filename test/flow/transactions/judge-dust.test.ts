// Somebody pays one transaction in 20,000 outputs: how long a database transaction of the judge is open and a watcher may have to wait for
// one of its rows, how long other transactions wait, what one more output costs, and how long the worker itself is blocked (in CPU time of
// its thread, so that other work on the machine does not matter).
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { longestTurn, workedMs } from '../../support/longest-turn.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { slowness } from '../../support/slowness.ts';

const MINUTE = 60_000;
const MANY = 20_000;
const FEWER = 5_000;
const IN_ONE = 500;
const OPEN_MS = 1_000;
const LOCKED_MS = 500;
const MORE_MS = 100;
const HELD_MS = 100;
const TRIES = 6;

let service: ServiceOnDatabase;
let run: () => Promise<boolean>;
const troubles: unknown[] = [];
/** Of each database transaction how long it was open, and of that how long payments were locked. */
let opened: { ms: number; lockedMs: number }[];
beforeEach(async () => {
  service = await openServiceOnDatabase();
  opened = [];
  run = createJudgeDue({ ...service.ctx, db: { ...service.db, transaction: timed } }, (_, error) => troubles.push(error));
});
afterEach(async () => {
  expect(troubles.splice(0)).toEqual([]);
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

async function timed<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const began = performance.now();
  let lockedAt = Number.POSITIVE_INFINITY;
  try {
    return await service.db.transaction((sql) =>
      work({
        query(statement) {
          if (statement.name === 'update_judged_payments') lockedAt = Math.min(lockedAt, performance.now());
          return sql.query<never>(statement);
        },
      }),
    );
  } finally {
    const now = performance.now();
    opened.push({ ms: now - began, lockedMs: Math.max(0, now - lockedAt) });
  }
}

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Judges until nothing is due: no step of it takes long. Where only the wall clock can tell, the middle leaves out other work on the machine. */
async function judgeAll(what: string): Promise<void> {
  opened = [];
  const held = await longestTurn(async () => {
    while (await run());
  });
  const slow = slowness();
  expect(middle(opened.map(({ ms }) => ms)), `${what}: milliseconds open`).toBeLessThan(OPEN_MS * slow);
  expect(middle(opened.map(({ lockedMs }) => lockedMs)), `${what}: milliseconds with locked payments`).toBeLessThan(
    LOCKED_MS * slow,
  );
  expect(held, `${what}: milliseconds held`).toBeLessThan(HELD_MS * slow);
}

async function dust(id: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += IN_ONE)
    await service.pay(
      id,
      Array.from({ length: IN_ONE }, (_, vout) => BigInt(546 + vout)),
    );
}

/** What one more costs this process, the least of some tries. */
async function oneMore(id: string): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < TRIES; n++) {
    await service.pay(id, 700n);
    const began = workedMs();
    while (await run());
    times.push(workedMs() - began);
  }
  return Math.min(...times);
}

test.each([
  { how: 'to one order that is paid', usdMinor: 50_00n, lateMinutes: 0, many: MANY },
  { how: 'to one order that waits for more', usdMinor: 50_000_00n, lateMinutes: 0, many: FEWER },
  { how: 'to one order that is late', usdMinor: 50_000_00n, lateMinutes: 20, many: FEWER },
])('$many outputs $how: no step takes long', { timeout: 300_000 }, async ({ usdMinor, lateMinutes, many }) => {
  const { transactionId: id } = await service.create(usdMinor);
  if (usdMinor === 50_00n) {
    await service.pay(id, 50_000n);
    await service.mine();
  }
  if (lateMinutes > 0) await service.wait(lateMinutes * MINUTE);
  await judgeAll('before');
  await dust(id, many);
  await judgeAll('seen');
  expect(await oneMore(id)).toBeLessThan(MORE_MS * slowness());
  await service.mine();
  await judgeAll('mined');
  expect(await oneMore(id)).toBeLessThan(MORE_MS * slowness());
  await service.mine(6);
  await judgeAll('deep');
});

test('other orders, of the same merchant too, are decided within a second meanwhile', { timeout: 120_000 }, async () => {
  const { transactionId: id } = await service.create();
  await service.pay(id, 50_000n);
  await service.mine();
  while (await run());
  const others = [await service.create(), await service.create(50_00n, 'BTC', await service.openShop('other'))];
  await dust(id, FEWER);
  await service.mine();
  for (let n = 0; n < 3; n++) await run();
  for (const { transactionId } of others) await service.pay(transactionId, 50_000n);
  await service.mine();
  const began = performance.now();
  const paths = () => Promise.all(others.map(({ transactionId }) => service.path(transactionId)));
  while ((await paths()).some((path) => path.at(-1) !== 'succeeded')) expect(await run()).toBe(true);
  expect(performance.now() - began).toBeLessThan(1_000);
  expect(await run(), 'the large one was not done by then').toBe(true);
  while (await run());
});
