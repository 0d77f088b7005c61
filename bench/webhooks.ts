// What telling merchants costs: deliveries of events to webhooks, from the commit to the receiver, and streams of events.
import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { POLLED_LOCK } from '../src/store/deliveries/deliveries.ts';
import { type Instance, PASSWORD } from './instance.ts';
import { cpuOf, measure, median } from './measure.ts';
import { commandLine, cpuMicros, postgresCpuMicros, residentBytes, treeOf } from './processes.ts';
import type { Figure } from './report.ts';
import {
  addEvents,
  addHanging,
  HANGING,
  openReceiver,
  openSetting,
  percentile,
  removeHanging,
  type Setting,
} from './webhook-setting.ts';

const IDLE_PAUSE_MS = 30;
/** What was delivered and forgotten before is over by then. */
const SETTLE_MS = 1_000;
const LOOK_MS = 50;
const ENDPOINTS = 3;
const MERCHANTS = 10;
const MEBIBYTE = 2 ** 20;
const CREATE = { amount: '25.00', crypto_selected: 'BTC' };

type Size = {
  readonly idle: number;
  readonly waiting: number;
  /** Four times in each round. */
  readonly creates: number;
  readonly streams: number;
  readonly rounds: number;
};
function workerOf(instance: Instance): number {
  const pid = treeOf(instance.groupPid).find((one) => commandLine(one).some((word) => word.endsWith('/worker.ts')));
  if (pid === undefined) throw new Error('there is no worker');
  return pid;
}

/** From the commit of an event to its first byte at a receiver that waits for nothing else: alone, and beside endpoints that hang. */
async function fromCommit(setting: Setting, { idle: count, waiting }: Size): Promise<Figure[]> {
  const { api, client, transactionId } = setting;
  const [receiver, hanging] = [await openReceiver(), await openReceiver(true)];
  const { webhook } = await api.call<{ webhook: { id: string } }>('/create_webhook', { url: receiver.url });
  async function measured(): Promise<string> {
    const took: number[] = [];
    for (let n = 0; n < count + 10; n++) {
      const here = receiver.next(1);
      await client.query('begin');
      await addEvents(client, transactionId, 1);
      const beganMs = performance.now();
      await client.query('commit');
      await here;
      if (n >= 10) took.push(receiver.firstByteMs() - beganMs);
      await delay(IDLE_PAUSE_MS);
    }
    took.sort((a, b) => a - b);
    return `p50 ${percentile(took, 0.5).toFixed(1)} ms, p99 ${percentile(took, 0.99).toFixed(1)} ms`;
  }
  const alone = await measured();
  const each = Math.floor(Math.min(count, waiting / HANGING));
  await addHanging(setting, hanging.url, each);
  const beside = await measured();
  await removeHanging(client);
  await api.call('/delete_webhook', { webhook_id: webhook.id });
  for (const one of [receiver, hanging]) one.close();
  return [
    {
      work: 'webhook: commit of an event to its first byte at the receiver, idle',
      measured: alone,
      goal: 'p50 ≤ 15, p99 ≤ 60 ms',
    },
    {
      work: `webhook: the same beside ${HANGING} endpoints that hang, for each of which ${each.toLocaleString('en')} wait`,
      measured: beside,
      goal: 'the same',
    },
  ];
}

/** A fast endpoint alone, then beside endpoints that hang, each with the same number of deliveries waiting. */
async function sustained(setting: Setting, { waiting }: Size): Promise<Figure[]> {
  const { instance, api, client, transactionId } = setting;
  const worker = workerOf(instance);
  const receiver = await openReceiver();
  const hanging = await openReceiver(true);
  const { webhook } = await api.call<{ webhook: { id: string } }>('/create_webhook', { url: receiver.url });
  const spent = () => cpuMicros(worker) + postgresCpuMicros(instance.postmasterPid);
  async function deliver(count: number): Promise<{ readonly perSecond: number; readonly micros: number }> {
    const all = receiver.next(count);
    await addEvents(client, transactionId, count);
    const [beganMs, before] = [performance.now(), spent()];
    await all;
    return { perSecond: (1000 * count) / (performance.now() - beganMs), micros: (spent() - before) / count };
  }
  await deliver(Math.ceil(waiting / 20));
  const alone = await deliver(waiting / 2);
  const memory = residentBytes(worker);
  await addHanging(setting, hanging.url, Math.floor(waiting / 2 / HANGING));
  const beside = await deliver(waiting / 2);
  const grown = residentBytes(worker) - memory;
  await removeHanging(client);
  await api.call('/delete_webhook', { webhook_id: webhook.id });
  for (const one of [receiver, hanging]) one.close();
  return [
    {
      work: `webhooks: ${(waiting / 2).toLocaleString('en')} deliveries to one fast endpoint, one worker`,
      measured: `${alone.perSecond.toFixed(0)} a second, ${alone.micros.toFixed(0)} µs of CPU each (worker and PostgreSQL)`,
      goal: '≥ 1,000 a second, ≤ 350 µs',
    },
    {
      work: `webhooks: the same beside as many that wait for ${HANGING} endpoints that hang`,
      measured: `${beside.perSecond.toFixed(0)} a second, ${((100 * beside.perSecond) / alone.perSecond).toFixed(0)} % of the pace without them; the worker's memory grew by ${(grown / MEBIBYTE).toFixed(0)} MiB`,
      goal: '≥ 80 %, memory flat',
    },
  ];
}

/**
 * Waits until a worker has looked at the node once more: one that was halted has not for a while, and after a minute no transaction is made.
 */
async function untilLookedAt(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now');
  const text = `select pg_notify('hurry', 'chain BTC'), exists (select from node_conditions where currency = 'BTC' and looked_at > $1) as looked`;
  while ((await client.query<{ looked: boolean }>(text, [rows[0]?.now])).rows[0]?.looked !== true) await delay(LOOK_MS);
}

/** Whether a worker looks for deliveries at an interval, so that no commit tells it. */
async function isPolling(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_locks, (select hashtextextended($1, 0) as key) k
      where locktype = 'advisory' and granted and classid::bigint = (key >> 32) & 4294967295 and objid::bigint = key & 4294967295`,
    [POLLED_LOCK],
  );
  return rows.length > 0;
}

/** Halts the worker while it polls: as soon as many events are written it does. */
async function haltPolling(worker: number, { api, client, transactionId }: Setting): Promise<void> {
  const { webhook } = await api.call<{ webhook: { id: string } }>('/create_webhook', { url: 'http://127.0.0.1:9/' });
  for (;;) {
    while (!(await isPolling(client))) await addEvents(client, transactionId, 10);
    process.kill(worker, 'SIGSTOP');
    if (await isPolling(client)) break;
    process.kill(worker, 'SIGCONT');
  }
  await api.call('/delete_webhook', { webhook_id: webhook.id });
}

/** Halts it while it rests. */
async function haltResting(worker: number, { client }: Setting): Promise<void> {
  await delay(SETTLE_MS);
  while (await isPolling(client)) await delay(LOOK_MS);
  process.kill(worker, 'SIGSTOP');
}

/**
 * What is measured changes more from minute to minute than webhooks cost, so each round compares what it has measured itself, without, with, with
 * and without them: what grows or drifts evenly is on both sides. The worker is halted meanwhile, so that deliveries are written and not made; it
 * looks at its nodes before each round.
 */
async function dearer(
  setting: Setting,
  { creates, rounds }: Size,
  halt: (worker: number, setting: Setting) => Promise<void>,
): Promise<string> {
  const { instance, api, client } = setting;
  const worker = workerOf(instance);
  const server = { port: instance.port, pid: instance.apiPid, postmasterPid: instance.postmasterPid };
  const bodies = [JSON.stringify({ access_token: api.token, ...CREATE })];
  const job = { path: '/create_transaction', bodies, connections: 8, requests: creates };
  const own = async (): Promise<number> => cpuOf(await measure(server, job));
  async function withThem(): Promise<number> {
    const made: string[] = [];
    for (let n = 0; n < ENDPOINTS; n++)
      made.push((await api.call<{ webhook: { id: string } }>('/create_webhook', { url: `http://127.0.0.1:9/${n}` })).webhook.id);
    const micros = await own();
    for (const webhook_id of made) await api.call('/delete_webhook', { webhook_id });
    return micros;
  }
  async function round(): Promise<{ readonly without: number; readonly more: number }> {
    await delay(SETTLE_MS);
    await untilLookedAt(client);
    await halt(worker, setting);
    try {
      const [first, second, third, last] = [await own(), await withThem(), await withThem(), await own()];
      return { without: (first + last) / 2, more: (second + third) / 2 };
    } finally {
      process.kill(worker, 'SIGCONT');
    }
  }
  await round();
  const measured: { readonly without: number; readonly more: number; readonly dearer: number }[] = [];
  for (let n = 0; n < rounds; n++) {
    const { without, more } = await round();
    measured.push({ without, more, dearer: 100 * (more / without - 1) });
  }
  const { without, more, dearer: percent } = median(measured, (one) => one.dearer);
  const all = measured.map((one) => one.dearer).sort((a, b) => a - b);
  const middle = `half of ${rounds} rounds ${percentile(all, 0.25).toFixed(0)} to ${percentile(all, 0.75).toFixed(0)} %`;
  return `${more.toFixed(0)} µs against ${without.toFixed(0)} µs of CPU: ${percent.toFixed(0)} % dearer (${middle})`;
}

async function creates(setting: Setting, size: Size): Promise<Figure[]> {
  const work = `create_transaction with ${ENDPOINTS} webhooks against none`;
  return [
    { work, measured: await dearer(setting, size, haltPolling), goal: '≤ 10 %' },
    {
      work: `${work}, where each wakes the worker: below some 200 events a second`,
      measured: await dearer(setting, size, haltResting),
      goal: '',
    },
  ];
}

/** An open stream; `told` is called with each event. */
async function openStream(port: number, token: string, told: () => void): Promise<() => void> {
  const body = JSON.stringify({ access_token: token });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const call = request({ port, host: '127.0.0.1', path: '/stream_events', method: 'POST', headers, agent: false });
  call.on('error', () => undefined).end(body);
  const [response] = await once(call, 'response');
  if (response.statusCode !== 200) throw new Error(`/stream_events answered ${response.statusCode}`);
  response.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes('\ndata: ')) told();
  });
  response.on('error', () => undefined);
  return () => call.destroy();
}

async function streams({ instance, api, client }: Setting, { streams: count }: Size): Promise<Figure[]> {
  const ids: string[] = [];
  const tokens: string[] = [];
  for (let n = 0; n < MERCHANTS; n++) {
    const user = { username: `stream-${n}`, password: PASSWORD };
    await api.call('/sandbox/merchant', user);
    const { access_token } = await api.call<{ access_token: string }>('/auth', user, undefined);
    tokens.push(access_token);
    ids.push((await api.call<{ transaction_id: string }>('/create_transaction', CREATE, access_token)).transaction_id);
  }
  const before = residentBytes(instance.apiPid);
  let left = 0;
  let all: () => void = () => undefined;
  const told = (): void => {
    left -= 1;
    if (left === 0) all();
  };
  const close: (() => void)[] = [];
  for (let n = 0; n < count; n += MERCHANTS)
    close.push(...(await Promise.all(tokens.map((token) => openStream(instance.port, token, told)))));
  const opened = residentBytes(instance.apiPid);
  const took: number[] = [];
  for (let round = 0; round < 10; round++) {
    left = close.length;
    const here = new Promise<void>((resolve) => {
      all = resolve;
    });
    await client.query('begin');
    for (const id of ids) await addEvents(client, id, 1);
    const beganMs = performance.now();
    await client.query('commit');
    await here;
    took.push(performance.now() - beganMs);
  }
  for (const end of close) end();
  took.sort((a, b) => a - b);
  return [
    {
      work: `${close.length.toLocaleString('en')} streams of events of ${MERCHANTS} merchants`,
      measured: `${((opened - before) / MEBIBYTE).toFixed(0)} MiB more in the API; commit to the last of all ${percentile(took, 0.5).toFixed(0)} ms, at most ${took.at(-1)?.toFixed(0)} ms`,
      goal: '≤ 60 MB, ≤ 250 ms',
    },
  ];
}

export async function measureWebhooks(instance: Instance, size: Size): Promise<Figure[]> {
  const client = new pg.Client({ connectionString: instance.databaseUrl });
  await client.connect();
  try {
    const setting = await openSetting(instance, client);
    const figures: Figure[] = [];
    for (const part of [streams, creates, fromCommit, sustained]) {
      const measured = await part(setting, size);
      figures.push(...measured);
      for (const { work, measured: figure } of measured) process.stderr.write(`${work}: ${figure}\n`);
    }
    return figures;
  } finally {
    await client.end();
  }
}
