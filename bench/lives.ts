// What whole lives cost: unpaid to `timedout`, the last look after 24 h, paid to `succeeded`, in CPU of every process of the instance; how
// long a payment takes to `pending`, and sixteen of one block to `succeeded`. The cost of the idle instance is measured before and subtracted.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Instance, PASSWORD } from './instance.ts';
import { loadWell } from './measure.ts';
import { commandLine, cpuMicros, postgresCpuMicros, treeOf } from './processes.ts';
import type { Figure } from './report.ts';

export type LivesSize = {
  readonly unpaid: number;
  readonly rounds: number;
  /** How long the start may go on (caches, collected garbage) before the idle instance is measured, and how long it is. */
  readonly afterSeconds: number;
  readonly restSeconds: number;
};

const AT_ONCE = 16;
const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;
const LOOK_MS = 20;

/** Microseconds of CPU by process. */
type Cpu = ReadonlyMap<string, number>;

function cpuOf(instance: Instance): Cpu {
  const spent = new Map<string, number>([['postgres', postgresCpuMicros(instance.postmasterPid)]]);
  const database = new Set(treeOf(instance.postmasterPid));
  for (const pid of treeOf(instance.groupPid)) {
    if (database.has(pid)) continue;
    const entry = commandLine(pid).find((word) => /\/src\/main\/[a-z-]+\.ts$/.test(word));
    const name = entry?.replace(/^.*\//, '').replace(/(-process)?\.ts$/, '') ?? 'other';
    spent.set(name, (spent.get(name) ?? 0) + cpuMicros(pid));
  }
  return spent;
}

type Spent = { readonly cpu: Cpu; readonly seconds: number };

async function spend(instance: Instance, work: () => Promise<unknown>): Promise<Spent> {
  const before = cpuOf(instance);
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1000;
  const after = cpuOf(instance);
  return { cpu: new Map([...after].map(([name, micros]) => [name, micros - (before.get(name) ?? 0)])), seconds };
}

/** Milliseconds of CPU for each of `count`, less the idle cost for that time and less a fixed part. */
function each(spent: Spent, rest: Spent, count: number, fixed: Spent | null = null): { total: number; parts: string } {
  const own = (one: Spent, name: string) => (one.cpu.get(name) ?? 0) - ((rest.cpu.get(name) ?? 0) * one.seconds) / rest.seconds;
  const parts = [...spent.cpu.keys()].map((name) => {
    const micros = own(spent, name) - (fixed === null ? 0 : own(fixed, name));
    return { name, ms: micros / 1000 / count };
  });
  const total = parts.reduce((sum, part) => sum + part.ms, 0);
  const shown = parts.filter(({ ms }) => Math.abs(ms) > total / 50).map(({ name, ms }) => `${name} ${ms.toFixed(2)}`);
  return { total, parts: shown.join(', ') };
}

async function post<T>(instance: Instance, path: string, body: unknown): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${instance.port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const said = (await answer.json()) as T;
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(said)}`);
  return said;
}

/** Every token expires when the clock moves: each step signs in again. */
async function creating(instance: Instance, count: number): Promise<readonly string[]> {
  const token = await instance.token();
  const body = JSON.stringify({ access_token: token, amount: '25.00', crypto_selected: 'BTC', label: 'life {n}' });
  const job = { port: instance.port, path: '/create_transaction', bodies: [body], connections: AT_ONCE, requests: count };
  return (await loadWell({ ...job, collect: 'transaction_id' })).collected;
}

async function expectAll(instance: Instance, ids: readonly string[], status: string): Promise<void> {
  const token = await instance.token();
  for (let at = 0; at < ids.length; at += Math.max(1, Math.floor(ids.length / 50))) {
    const seen = await post<{ status: string }>(instance, '/check_transaction', { access_token: token, transaction_id: ids[at] });
    if (seen.status !== status) throw new Error(`${ids[at]} is ${seen.status}, not ${status}`);
  }
}

/** Moves the clock, and waits until the audits that are due now are done: nobody waits for them, but they run beside what is measured. */
async function advance(instance: Instance, audits: pg.Client, seconds: number): Promise<void> {
  const { now } = await post<{ now: string }>(instance, '/sandbox/clock', { advance_seconds: seconds });
  const text = `select count(*)::int as running from schedules where name in ('audit', 'reconciliation')
                   and (finished_at is null or taken_at <= $1::timestamptz - make_interval(secs => every_ms / 1000.0))`;
  while ((await audits.query<{ running: number }>(text, [now])).rows[0]?.running !== 0) await delay(LOOK_MS);
}

async function unpaidLives(instance: Instance, rest: Spent, count: number): Promise<Figure[]> {
  const audits = new pg.Client({ connectionString: instance.databaseUrl });
  await audits.connect();
  const move = (seconds: number) => spend(instance, () => advance(instance, audits, seconds));
  // what other parts of the bench created must not end beside these
  await move(16 * MINUTE);
  await move(DAY);
  const ids = await creating(instance, count);
  const timedOut = await move(16 * MINUTE);
  await expectAll(instance, ids, 'timedout');
  const checked = await move(DAY);
  await expectAll(instance, ids, 'timedout_checked');
  // a move of the clock with nothing due belongs to no transaction: with the audits, which derive the newest addresses again
  const stepOfWindow = await move(16 * MINUTE);
  const stepOfDay = await move(DAY);
  await audits.end();
  const named = count.toLocaleString('en');
  return [
    { spent: timedOut, fixed: stepOfWindow, work: `unpaid to timedout, ${named} at once`, goal: '≤ 0.5 ms' },
    { spent: checked, fixed: stepOfDay, work: `timedout to timedout_checked, ${named} at once`, goal: '≤ 0.5 ms' },
  ].map(({ spent, fixed, work, goal }) => {
    const { total, parts } = each(spent, rest, count, fixed);
    return { work, measured: `${total.toFixed(2)} ms of CPU each (${parts}), ${spent.seconds.toFixed(1)} s in all`, goal };
  });
}

/** Sixteen of one merchant: created and paid at the same time, mined in one block, waited for until each has succeeded. */
async function round(instance: Instance, token: string): Promise<readonly number[]> {
  const all = Array.from({ length: AT_ONCE });
  const create = { access_token: token, amount: '25.00', crypto_selected: 'BTC' };
  const made = await Promise.all(all.map(() => post<{ transaction_id: string }>(instance, '/create_transaction', create)));
  const ids = made.map((one) => one.transaction_id);
  await Promise.all(ids.map((id) => post(instance, '/sandbox/pay', { transaction_id: id })));
  const began = performance.now();
  const waiting = ids.map(async (id) => {
    const wait = { access_token: token, transaction_id: id, wait_seconds: 30, status_was: 'pending' };
    const seen = await post<{ status: string }>(instance, '/check_transaction', wait);
    if (seen.status !== 'succeeded') throw new Error(`${id} is ${seen.status}`);
    return performance.now() - began;
  });
  const [times] = await Promise.all([Promise.all(waiting), post(instance, '/sandbox/mine', { currency: 'BTC', blocks: 1 })]);
  return times;
}

/** Milliseconds from the control that sends a payment to the answer that it is `pending`; one payment after the other, each by itself. */
async function pendingTimes(instance: Instance, token: string, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const create = { access_token: token, amount: '25.00', crypto_selected: 'BTC' };
    const { transaction_id } = await post<{ transaction_id: string }>(instance, '/create_transaction', create);
    const wait = { access_token: token, transaction_id, wait_seconds: 30, status_was: 'started' };
    const waiting = post<{ status: string }>(instance, '/check_transaction', wait);
    await delay(LOOK_MS);
    const began = performance.now();
    const paid = post(instance, '/sandbox/pay', { transaction_id });
    const { status } = await waiting;
    times.push(performance.now() - began);
    if (status !== 'pending') throw new Error(`${transaction_id} is ${status}`);
    await paid;
  }
  await post(instance, '/sandbox/mine', { currency: 'BTC', blocks: 1 });
  return times;
}

/** The time below which this share of the sorted times lies. */
function quantile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0);
}

function spread(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  return `p50 ${quantile(sorted, 0.5)} ms, p99 ${quantile(sorted, 0.99)} ms, most ${quantile(sorted, 1)} ms`;
}

async function paidLives(instance: Instance, rest: Spent, rounds: number): Promise<Figure[]> {
  const token = await instance.token();
  const pending = await pendingTimes(instance, token, rounds * AT_ONCE);
  await round(instance, token);
  const times: number[] = [];
  const spent = await spend(instance, async () => {
    for (let n = 0; n < rounds; n++) times.push(...(await round(instance, token)));
  });
  const { total, parts } = each(spent, rest, rounds * AT_ONCE);
  return [
    { work: 'mempool to pending, one payment at a time', measured: spread(pending), goal: 'p99 ≤ 250 ms' },
    {
      work: 'paid life, five chains, BTC at 1 confirmation',
      measured: `${total.toFixed(1)} ms of CPU each (${parts})`,
      goal: '≤ 8 ms',
    },
    {
      work: `block to succeeded, ${AT_ONCE} payments to one merchant in it`,
      measured: spread(times),
      goal: 'p99 ≤ 300 ms',
    },
  ];
}

/** The lives on a running instance of the sandbox; moves its clock by days. */
export async function measureLives(instance: Instance, size: LivesSize): Promise<Figure[]> {
  await post(instance, '/auth', { username: 'demo', password: PASSWORD });
  await delay(size.afterSeconds * 1000);
  const rest = await spend(instance, () => delay(size.restSeconds * 1000));
  const total = [...rest.cpu.values()].reduce((sum, micros) => sum + micros, 0);
  const restFigure = {
    work: 'at rest, every process (taken off the lives)',
    measured: `${(total / 1000 / rest.seconds).toFixed(0)} ms of CPU a second (${[...rest.cpu].map(([name, micros]) => `${name} ${(micros / 1000 / rest.seconds).toFixed(0)}`).join(', ')})`,
    goal: '',
  };
  return [restFigure, ...(await paidLives(instance, rest, size.rounds)), ...(await unpaidLives(instance, rest, size.unpaid))];
}
