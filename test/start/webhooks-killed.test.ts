// The real `npm start` in the sandbox while the worker, PostgreSQL and the merchant's own server are killed in the middle of deliveries: every
// event arrives, with the same id and body every time.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';
import { isSignedBy } from '../support/webhook-receiver.ts';

const TIMEOUT = 120_000;
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
let token = '';
let shop: ChildProcess;
let port = 0;
const received: { readonly headers: Record<string, string>; readonly text: string }[] = [];

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  await openShop();
  base = await service.ready;
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token;
}, TIMEOUT);
afterAll(async () => {
  shop.kill('SIGKILL');
  await service.stop();
  remove();
}, TIMEOUT);

/** Opens the merchant's server, the second time at its port. */
async function openShop(): Promise<void> {
  shop = spawn(process.execPath, [join(import.meta.dirname, '../support/webhook-receiver-process.ts'), String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: shop.stdout as NodeJS.ReadableStream });
  port = await new Promise((resolve) => {
    lines.once('line', (first) => {
      lines.on('line', (line) => received.push(JSON.parse(line)));
      resolve(Number(first));
    });
  });
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

test('kill -9 of worker, PostgreSQL and the receiver: each event arrives, always the same', { timeout: TIMEOUT }, async () => {
  const { webhook } = await ask('/create_webhook', { url: `http://127.0.0.1:${port}/hook` });
  const victims = ['worker', 'receiver', 'postgres', 'worker', 'receiver', 'worker'] as const;
  for (const [at, victim] of victims.entries()) {
    const { transaction_id } = await made('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
    await made('/cancel_transaction', { transaction_id });
    // a little later each time: before it is sent, while it is under way, before its result is written
    await delay(4 * at);
    if (victim === 'receiver') {
      shop.kill('SIGKILL');
      await made('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
      await openShop();
    } else {
      const pid = await eventually(victim, () => (victim === 'postgres' ? service.postgres() : service.processOf(victim)));
      process.kill(pid, 'SIGKILL');
    }
  }
  const events: { id: string }[] = (await made('/list_events', { limit: 100 })).data;
  expect(events).toHaveLength(14);
  const missing = () => events.filter(({ id }) => !received.some(({ headers }) => headers['webhook-id'] === id));
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
