// The real `npm start` in the sandbox while the worker, PostgreSQL and the merchant's own server are killed in the middle of deliveries: every
// event arrives, with the same id and body every time.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';
import { isSignedBy } from '../support/webhook-receiver.ts';

const TIMEOUT = 120_000;
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
let token = '';
let shop: ChildProcess | undefined;
let port = 0;
type Got = { readonly headers: Record<string, string>; readonly text: string };
const received: Got[] = [];
let arrived: (got: Got) => void = () => undefined;
/** A receiver that is killed, or whose sender is, before it answers. */
const SLOW_MS = 10_000;

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  await openShop();
  base = await service.ready;
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token;
}, TIMEOUT);
afterAll(async () => {
  await closeShop();
  await service.stop();
  remove();
}, TIMEOUT);

/** Opens the merchant's server, in place of the one before and at its port. */
async function openShop(answersAfterMs = 0): Promise<void> {
  await closeShop();
  const program = join(import.meta.dirname, '../support/webhook-receiver-process.ts');
  const mine = spawn(process.execPath, [program, String(port), String(answersAfterMs)], { stdio: ['ignore', 'pipe', 'inherit'] });
  shop = mine;
  const lines = createInterface({ input: mine.stdout as NodeJS.ReadableStream });
  port = await new Promise((resolve) => {
    lines.once('line', (first) => {
      lines.on('line', (line) => {
        const got = JSON.parse(line) as Got;
        received.push(got);
        arrived(got);
      });
      resolve(Number(first));
    });
  });
}
async function closeShop(): Promise<void> {
  if (shop === undefined || shop.exitCode !== null || shop.signalCode !== null) return;
  const ended = once(shop, 'exit');
  shop.kill('SIGKILL');
  await ended;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the service said, for the test to look at
async function ask(path: string, body: object): Promise<any> {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ access_token: token, ...body }),
  });
  const json = await response.json();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(json)}`);
  return json;
}
/** A call that is made again while a killed process comes back. */
const made = (path: string, body: object) => eventually(path, () => ask(path, body).catch(() => null), 60_000);

/** Two events. */
async function change(): Promise<void> {
  const key = () => ({ idempotency_key: randomUUID() });
  const { transaction_id } = await made('/create_transaction', { ...key(), amount: '25.00', crypto_selected: 'BTC' });
  await made('/cancel_transaction', { ...key(), transaction_id });
}
/** The event that a delivery is on its way with. */
function nextArrival(): Promise<string> {
  return new Promise((resolve) => {
    arrived = ({ headers }) => resolve(headers['webhook-id'] ?? '');
  });
}
const kill = async (victim: 'worker' | 'postgres'): Promise<void> => {
  const pid = await eventually(victim, () => (victim === 'postgres' ? service.postgres() : service.processOf(victim)));
  process.kill(pid, 'SIGKILL');
};

test('kill -9 of each at each step: every event arrives, always the same', { timeout: TIMEOUT }, async () => {
  const { webhook } = await ask('/create_webhook', { url: `http://127.0.0.1:${port}/hook` });
  /** What was on its way when sender or receiver was killed: it comes again. */
  const unknown: string[] = [];
  async function underWay(answersAfterMs: number, end: () => Promise<void>): Promise<void> {
    await openShop(answersAfterMs);
    const arriving = nextArrival();
    const changing = change();
    const id = await arriving;
    await end();
    if (answersAfterMs > 0) unknown.push(id);
    await changing;
  }
  // written, and not begun
  const worker = await eventually('worker', () => service.processOf('worker'));
  process.kill(worker, 'SIGSTOP');
  await change();
  process.kill(worker, 'SIGKILL');
  // on its way
  await underWay(SLOW_MS, () => kill('worker'));
  await underWay(SLOW_MS, closeShop);
  // nobody is there
  await change();
  // answered, and the answer not written, or just so
  await underWay(0, () => kill('worker'));
  await underWay(0, () => kill('postgres'));
  await openShop();
  const events: { id: string }[] = (await made('/list_events', { limit: 100 })).data;
  expect(events).toHaveLength(12);
  const times = (id: string) => received.filter(({ headers }) => headers['webhook-id'] === id).length;
  const missing = () => [...events.map(({ id }) => id), ...unknown].filter((id) => times(id) < (unknown.includes(id) ? 2 : 1));
  await eventually(
    'every event has arrived',
    async () => {
      if (missing().length === 0) return true;
      // what found nobody is tried again after five seconds, five minutes …
      await ask('/sandbox/clock', { advance_seconds: 400 }).catch(() => undefined);
      return false;
    },
    60_000,
  );
  for (const got of received) {
    expect(JSON.parse(got.text)).toEqual(events.find(({ id }) => id === got.headers['webhook-id']));
    expect(isSignedBy({ ...got, body: null }, webhook.secret)).toBe(true);
  }
});
