// What /metrics tells a monitoring: in Prometheus' text format, from the database, and of calls as they are answered.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createMetrics } from '../../src/flow/metrics.ts';
import { createDurations } from '../../src/http/metrics/durations.ts';
import { createMetricsServer } from '../../src/http/metrics/server.ts';
import { metricText } from '../../src/http/metrics/text.ts';
import { tripBreaker } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const durations = createDurations();
let api: ApiServer;
let server: Server;
let url: string;
const reports: unknown[] = [];

beforeAll(async () => {
  api = await makeApi({ durations });
});
/** Another one has read nothing yet. */
async function serve(ctx = api.ctx): Promise<void> {
  stop();
  server = createMetricsServer({ metrics: createMetrics(ctx), durations, report: ({ error }) => reports.push(error) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}
beforeEach(() => serve());
afterAll(async () => {
  stop();
  await api.end();
});
function stop(): void {
  server?.close();
  server?.closeAllConnections();
}

const LINE =
  /^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? (?:-?\d+(?:\.\d+)?(?:e-?\d+)?))$/;

/** The values by their names with labels. */
async function read(): Promise<ReadonlyMap<string, string>> {
  const answer = await fetch(url);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const lines = (await answer.text()).trimEnd().split('\n');
  for (const line of lines) expect(line).toMatch(LINE);
  const values = lines.filter((line) => !line.startsWith('#')).map((line) => line.split(/ (?=[^ ]+$)/) as [string, string]);
  expect(new Set(values.map(([name]) => name)).size).toBe(values.length);
  return new Map(values);
}

test('chains, prices, breakers and money are told as they are', async () => {
  const before = await read();
  expect(before.get('bursar_database_up')).toBe('1');
  expect(before.get('bursar_node_ready{currency="BTC"}')).toBe('1');
  expect(before.get('bursar_breaker_open{name="payouts"}')).toBe('0');
  expect(Number(before.get('bursar_rate_age_seconds{currency="BTC"}'))).toBeGreaterThanOrEqual(0);
  const atMs = api.now();
  const [{ id: merchantId } = { id: 0n }] = await api.sql('select id from merchants order by id limit 1');
  const postings = [
    { account: 'asset:chain:BTC', amount: 123_456_789n },
    { account: `merchant:${merchantId}:available:BTC`, amount: -123_456_789n },
  ];
  const entry = { key: 'test:funds', kind: 'test_funds', postings, parts: [] };
  await postEntries(api.ctx.db, [{ entry, transactionId: null, atMs }]);
  await tripBreaker(api.ctx.db, { name: 'payouts', by: ['INV-1'], findings: ['a finding'], atMs });
  await serve();
  const after = await read();
  expect(after.get('bursar_assets{account="asset:chain:BTC",currency="BTC"}')).toBe('1.23456789');
  expect(after.get('bursar_merchant_balances{kind="available",currency="BTC"}')).toBe('1.23456789');
  expect(after.get('bursar_breaker_open{name="payouts"}')).toBe('1');
  await api.sql('delete from breakers');
});

test('reviews, open payouts and waiting deliveries are counted over all merchants', async () => {
  const { json } = await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
  await api.sql(`update transactions set status = 'review' where id = $1`, [json.transaction_id]);
  const values = await read();
  expect(values.get('bursar_transactions_in_review{currency="BTC"}')).toBe('1');
  expect(values.get('bursar_deliveries_waiting')).toBe('0');
  await api.sql(`update transactions set status = 'started' where id = $1`, [json.transaction_id]);
});

test('events are counted once each from when it began, after ten seconds', async () => {
  let nowMs = 0;
  const metrics = createMetrics(api.ctx, () => nowMs);
  const started = async () =>
    (await metrics.read())
      .find(({ name }) => name === 'bursar_events_total')
      ?.values.find(({ labels }) => labels?.type === 'transaction.started')?.value ?? 0n;
  await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
  expect(await started()).toBe(0n);
  await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
  await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
  nowMs += 10_000;
  // who still writes a lower number must have ended before they are counted
  expect(await started()).toBe(0n);
  nowMs += 10_000;
  expect(await started()).toBe(2n);
  nowMs += 10_000;
  expect(await started()).toBe(2n);
});

test('calls are told by route and status, paths that do not exist as one, and none with an id', async () => {
  await api.call('/get_account_info', {});
  await api.send('/check_transaction', {});
  for (const path of ['/nothing', '/nothing/else', '/pay/zzz']) await api.send(path, undefined, {}, 'GET');
  const values = await read();
  const name = 'bursar_http_request_duration_seconds';
  expect(Number(values.get(`${name}_count{route="/get_account_info",status="200"}`))).toBe(1);
  expect(values.get(`${name}_bucket{route="/get_account_info",status="200",le="+Inf"}`)).toBe('1');
  expect(Number(values.get(`${name}_count{route="none",status="404"}`))).toBe(2);
  expect(values.get(`${name}_count{route="/pay/:token",status="404"}`)).toBe('1');
  expect([...values.keys()].join()).not.toMatch(/txn_|merchant:\d|zzz/);
});

test('other paths and methods are refused', async () => {
  expect((await fetch(new URL('/', url))).status).toBe(404);
  const posted = await fetch(url, { method: 'POST' });
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('a label keeps what it says', () => {
  const metric = { name: 'a', help: 'of\nlines', type: 'gauge' as const, values: [{ labels: { of: 'a "b" \\ \n' }, value: 1 }] };
  expect(metricText(metric)).toBe('# HELP a of\\nlines\n# TYPE a gauge\na{of="a \\"b\\" \\\\ \\n"} 1\n');
});

test('a database that does not answer is told, with what the process knows itself', async () => {
  const away = { ...api.ctx, db: { ...api.ctx.db, query: () => Promise.reject(new Error('Connection terminated')) } };
  await serve(away);
  const values = await read();
  expect(values.get('bursar_database_up')).toBe('0');
  expect(values.has('bursar_assets{account="asset:chain:BTC",currency="BTC"}')).toBe(false);
  expect(Number(values.get('process_resident_memory_bytes'))).toBeGreaterThan(1e6);
  expect(reports).toHaveLength(1);
});
