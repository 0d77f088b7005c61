// `bursar webhook`: an operator sees which endpoints fail, what they answered, and has everything delivered to them again.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createWebhookSender } from '../../src/outside/webhooks/sender.ts';
import { createDeliveries } from '../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../http/api-server.ts';
import { type Receiver, startReceiver, take } from '../support/webhook-receiver.ts';
import { askCli, type Environment, runCli } from './run.ts';

// each command is a process of its own
vi.setConfig({ testTimeout: 180_000 });

let api: ApiServer;
let shop: Receiver;
let here: Environment;
beforeAll(async () => {
  api = await makeApi();
  shop = await startReceiver((_got, response) => response.writeHead(500).end('out of \u001b[31morder\n'));
  here = { DATABASE_URL: api.url };
});
afterAll(async () => {
  shop.close();
  await api.end();
});

type Shown = {
  webhook_id: string;
  state: string;
  waiting: number;
  last_attempt: { status: number } | null;
  attempts?: { event_id: string; status: number; answer: string }[];
};
const list = async (...args: string[]) => (await askCli<{ data: Shown[] }>(['webhook', 'list', ...args], here)).data;
const show = (id: string) => askCli<Shown>(['webhook', 'show', id], here);
const started = () => api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });

/** A worker that delivers until this is so. */
async function delivered(isSo: () => Promise<boolean>): Promise<void> {
  const deliveries = createDeliveries(api.ctx, createWebhookSender(api.ctx.ports.outbound), () => undefined);
  const loop = startLoop([deliveries.job], () => undefined);
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
  await loop.stop();
  await deliveries.finish(AbortSignal.timeout(500));
}

test('what fails is listed and shown, and is delivered again when the operator says so', async () => {
  expect((await runCli(['webhook', 'list'], here)).out).toBe('There is no webhook.\n');
  const { webhook } = (await api.call('/create_webhook', { url: shop.url })).json;
  const quiet = (await api.call('/create_webhook', { url: shop.url }, {}, 'other')).json.webhook;
  expect((await runCli(['webhook', 'list', '--failing'], here)).out).toBe('No webhook fails.\n');
  await started();
  await started();
  await delivered(async () => (await api.sql('select from deliveries where failures = 1')).length === 2);
  expect(await list()).toMatchObject([
    { webhook_id: quiet.id, state: 'new', waiting: 0, last_attempt: null, affiliate_id: api.otherAffiliateId },
    { webhook_id: webhook.id, state: 'failing', waiting: 2, last_attempt: { status: 500 }, affiliate_id: api.affiliateId },
  ]);
  expect((await list('--failing')).map(({ webhook_id }) => webhook_id)).toEqual([webhook.id]);
  expect((await list('--merchant', api.otherAffiliateId)).map(({ webhook_id }) => webhook_id)).toEqual([quiet.id]);
  const { attempts, state } = await show(webhook.id);
  expect([state, attempts?.map(({ status, answer }) => [status, answer])]).toEqual([
    'failing',
    [
      [500, 'out of [31morder'],
      [500, 'out of [31morder'],
    ],
  ]);
  const { out } = await runCli(['webhook', 'show', webhook.id], here);
  expect(out).toContain(`webhook     ${webhook.id}, failing`);
  expect(out).toMatch(/waiting {5}2, the oldest since 20\S+Z/);
  expect(out).toContain(`bursar webhook resend ${webhook.id}`);

  // one of them was given up
  const [{ event_id: givenUp }] = await api.sql(
    'delete from deliveries where event_id = (select min(event_id) from deliveries) returning event_id',
  );
  shop.answerWith((_got, response) => take(response));
  const again = { webhook_id: webhook.id, waiting: 1, given_up: 1 };
  expect(await askCli(['webhook', 'resend', webhook.id], here)).toEqual(again);
  expect(await api.sql('select failures, isfinite(due_at) as later from deliveries')).toEqual(
    Array.from({ length: 2 }, () => ({ failures: 0, later: false })),
  );
  await delivered(async () => (await api.sql('select from deliveries')).length === 0);
  const taken = await api.sql('select event_id from delivery_attempts where status = 204');
  expect(taken.map(({ event_id }) => event_id)).toContain(givenUp);
  expect(await list('--failing')).toEqual([]);
  expect(await askCli(['webhook', 'resend', webhook.id], here)).toEqual({ ...again, waiting: 0, given_up: 0 });
});

test('an attempt of more than thirty days ago is neither shown nor sent again, and one that answered 410 gets nothing', async () => {
  const { webhook } = (await api.call('/create_webhook', { url: shop.url, events: ['transaction.cancelled'] })).json;
  await api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
       select w.number, e.id, $2, 1, 500, '' from webhooks w, (select min(id) as id from events) e where w.id = $1`,
    [webhook.id, new Date(api.now() - 31 * 86_400_000)],
  );
  expect((await show(webhook.id)).attempts).toEqual([]);
  expect(await askCli(['webhook', 'resend', webhook.id], here)).toMatchObject({ waiting: 0, given_up: 0 });
  await api.sql('update webhooks set enabled = false where id = $1', [webhook.id]);
  expect((await show(webhook.id)).state).toBe('disabled');
  const refused = await askCli<{ error: string }>(['webhook', 'resend', webhook.id], here, 1);
  expect(refused.error).toBe('disabled');
  expect(await askCli(['webhook', 'show', 'wh_nobody'], here, 1)).toMatchObject({ error: 'not_found' });
});
