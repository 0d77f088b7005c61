// The worker's slow jobs are on the service's clock: each runs when that clock, not the machine's, says so, once for all workers. Jobs that
// change nothing a caller sees delay nobody.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../src/flow/context.ts';
import { takeDue } from '../../src/store/postgres/schedules.ts';
import { isSettled } from '../../src/store/transactions/due.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { workerJobs } from '../../src/worker/jobs.ts';
import { scheduled } from '../../src/worker/scheduled-job.ts';
import { SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';

const T0 = Date.UTC(2026, 0, 1);
const SECOND = 1_000;
let base: Awaited<ReturnType<typeof freshDatabase>>;
let nowMs: number;
beforeEach(async () => {
  base = await freshDatabase();
  nowMs = T0;
});
afterEach(() => base.drop());

/** Returns a function that runs the named job in a new worker. */
function newWorker(): (name: string) => Promise<boolean> {
  const watcher = { onHint: () => undefined } as unknown as ChainWatcher;
  const ctx = { db: base.db, ports: { clock: { now: () => nowMs }, chains: new Map(), seals: SEALS } } as unknown as Context;
  const jobs = workerJobs(ctx, new Map([['BTC', watcher]]), (job, error) => {
    throw new Error(`${job}: ${String(error)}`);
  });
  return async (name) => {
    const job = jobs.find((one) => one.name === name);
    if (job === undefined) throw new Error(`there is no job ${name}`);
    return job.run();
  };
}
async function lastRun(name: string): Promise<number | undefined> {
  const { rows } = await base.db.query<{ taken_at: Date; finished_at: Date }>({
    text: 'select taken_at, finished_at from schedules where name = $1',
    values: [name],
  });
  expect(rows.every((row) => row.finished_at !== null)).toBe(true);
  return rows[0]?.taken_at.getTime();
}

test.each([
  ['reconcile BTC', 60],
  ['reconciliation', 300],
  ['audit', 3_600],
])('%s runs every %i seconds of the service’s clock, once for all workers', async (name, seconds) => {
  const [one, other] = [newWorker(), newWorker()];
  await one(name);
  expect(await lastRun(name)).toBe(T0);
  nowMs += (seconds - 1) * SECOND;
  await Promise.all([one(name), other(name)]);
  expect(await lastRun(name)).toBe(T0);
  nowMs += SECOND;
  await Promise.all([one(name), other(name)]);
  expect(await lastRun(name)).toBe(nowMs);
  nowMs += 86_400 * SECOND;
  await other(name);
  expect(await lastRun(name)).toBe(nowMs);
});

test('a job that has found nothing new is due after five times its interval, and after one again when it has', async () => {
  const ctx = { db: base.db, ports: { clock: { now: () => nowMs } } } as unknown as Context;
  const runs: number[] = [];
  let isAtRest = false;
  let findsNew = false;
  const { run } = scheduled(ctx, 'reading', 60 * SECOND, {
    urgent: true,
    isAtRest: () => isAtRest,
    async work() {
      runs.push((nowMs - T0) / SECOND);
      isAtRest = !findsNew;
      return false;
    },
  });
  for (; nowMs <= T0 + 1_320 * SECOND; nowMs += 30 * SECOND) {
    findsNew = nowMs >= T0 + 600 * SECOND;
    await run();
  }
  expect(runs).toEqual([0, 60, 360, 660, 720, 780, 840, 900, 960, 1_020, 1_080, 1_140, 1_200, 1_260, 1_320]);
});

test.each([
  ['deep scan BTC', false],
  ['reconcile BTC', false],
  ['reconciliation', true],
  ['audit', true],
])('while %s is under way or due, the clock control need not wait: %s', async (name, isSettledMeanwhile) => {
  expect(await takeDue(base.db, name, 30 * SECOND, nowMs)).toBe(true);
  expect(await isSettled(base.db, nowMs)).toBe(isSettledMeanwhile);
  await base.db.query({ text: 'update schedules set finished_at = taken_at', values: [] });
  expect(await isSettled(base.db, nowMs)).toBe(true);
  expect(await isSettled(base.db, nowMs + 30 * SECOND)).toBe(isSettledMeanwhile);
});

test('of a second reading that takes long the clock control waits for the first part only', async () => {
  expect(await takeDue(base.db, 'reconcile BTC', 30 * SECOND, nowMs)).toBe(true);
  const read = `insert into chain_reconciled (currency, from_height, height, hash, updated_at) values ('BTC', 1, 1, '', $1)
                  on conflict (currency) do update set updated_at = excluded.updated_at`;
  await base.db.query({ text: read, values: [new Date(nowMs - 1)] });
  expect(await isSettled(base.db, nowMs)).toBe(false);
  await base.db.query({ text: read, values: [new Date(nowMs)] });
  expect(await isSettled(base.db, nowMs)).toBe(true);
});

test('a job whose worker died is taken over when it is due again, or ten minutes later at the latest', async () => {
  for (const [name, everyMs, lostAfterMs] of [
    ['reconcile BTC', 30 * SECOND, 30 * SECOND],
    ['audit', 3_600 * SECOND, 600 * SECOND],
  ] as const) {
    expect(await takeDue(base.db, name, everyMs, T0)).toBe(true);
    expect(await takeDue(base.db, name, everyMs, T0 + lostAfterMs - 1)).toBe(false);
    expect(await takeDue(base.db, name, everyMs, T0 + lostAfterMs)).toBe(true);
  }
});

test('a job that ran before the clock was set back runs again at once, and then in its rhythm', async () => {
  const one = newWorker();
  await one('reconcile BTC');
  nowMs -= 86_400 * SECOND;
  await one('reconcile BTC');
  expect(await lastRun('reconcile BTC')).toBe(nowMs);
  nowMs += 59 * SECOND;
  await one('reconcile BTC');
  expect(await lastRun('reconcile BTC')).toBe(nowMs - 59 * SECOND);
  nowMs += SECOND;
  await one('reconcile BTC');
  expect(await lastRun('reconcile BTC')).toBe(nowMs);
});

test('a job that fails is due again after pauses that grow to a minute, and at its interval once it succeeds', async () => {
  let fails = true;
  let tries = 0;
  const watcher = { onHint: () => undefined } as unknown as ChainWatcher;
  const failing = {
    ...base.db,
    query: async (statement: { name?: string }) => {
      if (statement.name === 'read_cursor') {
        tries++;
        if (fails) throw new Error('the statement took too long');
      }
      return base.db.query(statement as never);
    },
  };
  const ctx = { db: failing, ports: { clock: { now: () => nowMs }, chains: new Map() } } as unknown as Context;
  const job = workerJobs(ctx, new Map([['BTC', watcher]]), () => undefined).find(({ name }) => name === 'deep scan BTC')!;
  const pauses: number[] = [];
  for (let last = T0; pauses.length < 9; nowMs += SECOND) {
    const before = tries;
    await job.run().catch(() => undefined);
    if (tries === before) continue;
    pauses.push((nowMs - last) / SECOND);
    last = nowMs;
  }
  expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
  nowMs += 60 * SECOND;
  fails = false;
  await job.run();
  expect(tries).toBe(10);
  const succeeded = nowMs;
  for (; tries === 10; nowMs += SECOND) await job.run();
  expect((nowMs - SECOND - succeeded) / SECOND).toBe(600);
});
