// The API keeps to its own document under calls that schemathesis generates from it: no server error, only documented statuses, content
// types, headers and bodies; what the document forbids is refused and what it allows is accepted. The same calls in every run (a fixed
// seed).
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MERCHANT_API } from '../../src/contract/merchant-api.ts';
import { STREAM_API } from '../../src/contract/webhook-api.ts';
import { documentTool, run } from '../support/document-tools.ts';
import { fund, OUTSIDE, owe, tellFee } from '../support/funded.ts';
import { type ApiServer, makeApi, PASSWORD } from './api-server.ts';

/** Of each kind of made-up calls to each operation: about 1,100 calls in all. */
const EXAMPLES = 10;
const TIMEOUT = 240_000;

type Interaction = { readonly request: { readonly uri: string }; readonly response: { readonly status_code: number } | null };
type Event = { readonly ScenarioFinished?: { readonly recorder: { readonly interactions?: Record<string, Interaction> } } };

let api: ApiServer;
const folder = mkdtempSync(join(tmpdir(), 'bursar-schemathesis-'));
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  await api.end();
  rmSync(folder, { recursive: true, force: true });
});

/** How often each path was answered with each status. */
function statuses(): Map<string, Map<number, number>> {
  const counts = new Map<string, Map<number, number>>();
  const [report] = readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
  for (const line of readFileSync(join(folder, report as string), 'utf8')
    .trim()
    .split('\n')) {
    const { recorder } = (JSON.parse(line) as Event).ScenarioFinished ?? {};
    for (const { request, response } of Object.values(recorder?.interactions ?? {})) {
      const { pathname } = new URL(request.uri);
      const of = counts.get(pathname) ?? new Map<number, number>();
      counts.set(pathname, of.set(response?.status_code ?? 0, (of.get(response?.status_code ?? 0) ?? 0) + 1));
    }
  }
  return counts;
}

test('schemathesis finds nothing that the document does not say', { timeout: TIMEOUT }, async ({ skip }) => {
  const tool = await documentTool('schemathesis');
  if (tool.path === null) {
    skip(tool.reason);
    return;
  }
  const created = await Promise.all(
    ['BTC', 'LTC', 'BTC', 'LTC'].map((crypto_selected) => api.call('/create_transaction', { amount: '25.00', crypto_selected })),
  );
  await tellFee(api.ctx);
  const merchants = await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]);
  const merchantId = BigInt(merchants[0].id);
  await fund(api.ctx, merchantId, 1_000_000_000n);
  // they wait, so that they can be cancelled
  await owe(api.ctx, merchantId, 1n);
  const asked = await Promise.all(
    [1, 2, 3].map(() => api.call('/request_payout', { method: 'bitcoin', amount: '0.001', destination: OUTSIDE })),
  );
  const webhooks = await Promise.all([1, 2, 3, 4].map((n) => api.call('/create_webhook', { url: `http://127.0.0.1:9/${n}` })));
  const events = await api.call('/list_events', {});
  const env = {
    ...process.env,
    API_BASE: api.base,
    API_PASSWORD: PASSWORD,
    API_PAYOUTS: asked.map(({ json }) => json.payout.id).join(','),
    API_WEBHOOKS: webhooks.map(({ json }) => json.webhook.id).join(','),
    API_EVENTS: events.json.data.map(({ id }: { id: string }) => id).join(','),
    API_TRANSACTIONS: created.map(({ json }) => json.transaction_id).join(','),
    SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
    PYTHONPATH: import.meta.dirname,
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const config = join(import.meta.dirname, 'schemathesis.toml');
  const report = ['--report', 'ndjson', '--report-dir', folder, '--no-color'];
  const repeatable = ['--seed', '1', '--generation-database', 'none', '--max-examples', String(EXAMPLES)];
  // it would wait for the end of a stream
  const others = ['--exclude-path', STREAM_API.streamEvents.path];
  const called = ['run', `${api.base}/openapi.json`, '--request-timeout', '10', ...others];
  const args = ['--config-file', config, ...called, ...repeatable, ...report];
  const { code, output } = await run(tool.path, args, { env, cwd: folder });

  expect(code, output).toBe(0);
  expect(api.bugs).toEqual([]);
  // with a wrong token all would be well too: what is asked with a body is really done, or refused for what it is
  const seen = statuses();
  for (const { path } of Object.values(MERCHANT_API)) {
    const of = seen.get(path) ?? new Map();
    const done = (of.get(200) ?? 0) + (of.get(409) ?? 0) + (of.get(503) ?? 0);
    const all = [...of.values()].reduce((sum, n) => sum + n, 0);
    expect([path, all > 20, done / all > 0.1]).toEqual([path, true, true]);
  }
  for (const path of [
    '/auth',
    '/auth_refresh',
    '/create_transaction',
    '/check_transaction',
    '/cancel_transaction',
    '/set_settings',
    '/request_payout',
    '/check_payout',
    '/set_payout_settings',
  ])
    expect([path, (seen.get(path)?.get(200) ?? 0) >= 5]).toEqual([path, true]);
});
