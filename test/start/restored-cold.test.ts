// The real `npm start` in the sandbox, whose database is put back to an older copy while everything is stopped: /readyz and the audit say so until an
// operator has looked, and what happens then is told to webhooks with identifiers that no event had before.
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storedClusterFolder } from '../../src/main/postgres/cluster-paths.ts';
import { runCli } from '../cli/run.ts';
import { payoutClient } from '../support/payout-client.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 120_000;
const environment = { BURSAR_SANDBOX_BLOCK_SECONDS: '0' };
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
let shop: Server;
/** What the webhook was sent, by `webhook-id`. */
const bodies = new Map<string, Set<string>>();
const { ask, signIn, isGreen } = payoutClient({ base: () => base, folder });

beforeAll(async () => {
  shop = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      const id = String(request.headers['webhook-id']);
      bodies.set(id, (bodies.get(id) ?? new Set()).add(text));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => void shop.listen(0, '127.0.0.1', resolve));
  await begin();
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  shop.close();
  remove();
}, TIMEOUT);

async function begin(): Promise<void> {
  service = startService({ dataFolder: folder, environment });
  base = await service.ready;
  await signIn();
}
const databaseFolder = (): string => storedClusterFolder(folder);
const copy = (): string => `${databaseFolder()}-copy`;
const problems = async (): Promise<string[]> =>
  ((await (await fetch(`${base}/readyz`)).json()) as { problems: string[] }).problems.filter((one) => one.includes('put back'));
let auditCode: number | null = null;
async function audit(...args: string[]): Promise<string> {
  const { out, code } = await runCli(['audit', ...args], { BURSAR_DATA_DIR: folder });
  auditCode = code;
  return out;
}
type Event = { id: string; type: string; sequence: number };
const events = async (object: string): Promise<Event[]> =>
  ((await ask('/list_events', { object })) as { data: Event[] }).data.toReversed();
/** The event is listed, and the webhook has it. */
const told = (object: string, type: string): Promise<Event> =>
  eventually(`${type} of ${object}`, async () => {
    const found = (await events(object)).find((one) => one.type === type);
    return found !== undefined && bodies.has(found.id) ? found : null;
  });

test('an older copy, put back while everything is stopped', { timeout: TIMEOUT }, async () => {
  await ask('/create_webhook', { url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}/` });
  const { transaction_id } = await ask('/create_transaction', { amount: '20.00', crypto_selected: 'BTC' });
  const id = String(transaction_id);
  const started = await told(id, 'transaction.started');
  await service.stop();
  execFileSync('cp', ['-a', databaseFolder(), copy()]);
  await begin();
  expect(await problems()).toEqual([]);
  await ask('/cancel_transaction', { transaction_id });
  const lost = await told(id, 'transaction.cancelled');
  await service.stop();
  rmSync(databaseFolder(), { recursive: true });
  renameSync(copy(), databaseFolder());

  await begin();
  expect(service.output()).toContain('problem: the database was put back or replaced');
  expect(await problems()).toEqual([expect.stringMatching(/put back or replaced, found at .* went back from .*may be missing/)]);
  expect(await audit()).toMatch(/DB-1.*\n.*found at .* went back/);
  expect(auditCode).toBe(1);
  await ask('/sandbox/pay', { transaction_id });
  const pending = await told(id, 'transaction.pending');
  expect(pending.id).not.toBe(lost.id);
  expect(pending.sequence).toBeGreaterThan(lost.sequence);
  expect((await events(id)).map((one) => one.id)).toEqual([started.id, pending.id]);
  expect([...bodies.values()].filter(({ size }) => size > 1)).toEqual([]);

  // no start and no look finds it once more, and an operator ends it
  await service.stop();
  await begin();
  expect(await problems()).toHaveLength(1);
  expect(await audit('--acknowledge', 'database')).not.toContain('found at');
  expect(auditCode).toBe(0);
  expect(await problems()).toEqual([]);
  expect(await told(id, 'transaction.pending')).toEqual(pending);
  await isGreen();
});

test('the whole data folder, put back from a copy while everything is stopped', { timeout: TIMEOUT }, async () => {
  const { transaction_id } = await ask('/create_transaction', { amount: '20.00', crypto_selected: 'BTC' });
  const id = String(transaction_id);
  await told(id, 'transaction.started');
  await service.stop();
  const places = databaseFolder().startsWith(folder) ? [folder] : [folder, databaseFolder()];
  for (const place of places) execFileSync('cp', ['-a', place, `${place}-copy`]);
  await begin();
  await ask('/cancel_transaction', { transaction_id });
  const lost = await told(id, 'transaction.cancelled');
  await service.stop();
  for (const place of places) {
    rmSync(place, { recursive: true });
    renameSync(`${place}-copy`, place);
  }

  await begin();
  expect(await problems()).toEqual([
    expect.stringMatching(/the server's files are a copy of those that were here.*may be missing/),
  ]);
  await ask('/sandbox/pay', { transaction_id });
  expect((await told(id, 'transaction.pending')).sequence).toBeGreaterThan(lost.sequence);
  expect([...bodies.values()].filter(({ size }) => size > 1)).toEqual([]);
  await service.stop();
  await begin();
  expect(await problems()).toHaveLength(1);
});
