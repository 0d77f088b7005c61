// A clock that was fast and is set right: what failed while it was fast is not left waiting for the time that it showed.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LONGEST_PAUSES_MS } from '../../../src/core/webhooks.ts';
import { createWebhookSender } from '../../../src/outside/webhooks/sender.ts';
import { recallDeliveries } from '../../../src/store/deliveries/deliveries.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { eventually } from '../../support/service.ts';
import { isSignedBy, type Received, type Receiver, startReceiver, take } from '../../support/webhook-receiver.ts';

const FAST_SECONDS = 30 * 86_400;
let api: ApiServer;
let shop: Receiver;
let webhook: { readonly id: string; readonly secret: string };
beforeAll(async () => {
  api = await makeApi();
  shop = await startReceiver();
  webhook = (await api.call('/create_webhook', { url: shop.url })).json.webhook;
});
afterAll(async () => {
  shop.close();
  await api.end();
});

function worker() {
  const deliveries = createDeliveries(api.ctx, createWebhookSender(api.ctx.ports.outbound), () => undefined);
  const loop = startLoop([deliveries.job], () => undefined);
  async function stop(): Promise<void> {
    await loop.stop();
    await deliveries.finish(AbortSignal.timeout(500));
  }
  return { hurry: () => loop.hurry(), stop };
}
async function set(seconds: number): Promise<void> {
  api.advance(seconds);
  api.tokens.clear();
  await api.reopen();
}
/** An event that is refused once. */
async function refused(hurry: () => void): Promise<void> {
  shop.answerWith((_got, response) => take(response, 500));
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  hurry();
  while ((await api.sql('select from deliveries where failures = 1')).length === 0)
    await new Promise((resolve) => setTimeout(resolve, 10));
  shop.answerWith((_got, response) => take(response));
}

test.each([
  ['the same worker', false],
  ['one that begins afterwards', true],
])('by %s it is tried again within the pause that it had, with the same id', async (_who, isAnother) => {
  const from = shop.received.length;
  await set(FAST_SECONDS);
  const first = worker();
  await refused(first.hurry);
  if (isAnother) await first.stop();
  await set(-FAST_SECONDS);
  const now = isAnother ? worker() : first;
  now.hurry();
  await eventually(
    'another time',
    async () => (await api.sql(`select from deliveries where due_at > now() + interval '1 day'`)).length === 0,
  );
  expect(shop.received).toHaveLength(from + 1);
  await set(6);
  now.hurry();
  const [before, again] = (await shop.until((all) => all.length === from + 2)).slice(from);
  expect(again?.text).toBe(before?.text);
  await now.stop();
  expect(await api.sql('select from deliveries')).toEqual([]);
});

test('what failed together while the clock was fast is tried at different times, each within its pause', async () => {
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  // as after so many failures, the last of them while the clock was fast
  await api.sql(
    `insert into deliveries (webhook, event_id, due_at, failures) select 1_000_000 + n, (select max(id) from events), now() + interval '9 days', 1 + n % 2 * 5
       from generate_series(1, 200) n`,
  );
  const nowMs = api.ctx.ports.clock.now();
  const recall = { nowMs, longestMs: LONGEST_PAUSES_MS, limit: 150 };
  expect([await recallDeliveries(api.ctx.db, recall), await recallDeliveries(api.ctx.db, recall)]).toEqual([150, 50]);
  expect(await recallDeliveries(api.ctx.db, recall)).toBe(0);
  const rows = await api.sql('select failures, due_at from deliveries where webhook > 1_000_000');
  for (const failures of [1, 6]) {
    const afterMs = rows.filter((row) => row.failures === failures).map((row) => row.due_at.getTime() - nowMs);
    const longestMs = LONGEST_PAUSES_MS[failures - 1] as number;
    expect([afterMs.length, Math.min(...afterMs) >= 0, Math.max(...afterMs) <= longestMs]).toEqual([100, true, true]);
    expect(Math.max(...afterMs) - Math.min(...afterMs)).toBeGreaterThan(longestMs / 2);
  }
  await api.sql('delete from deliveries');
});

test('what waits for its turn on the schedule goes on waiting', async () => {
  const from = shop.received.length;
  const first = worker();
  await refused(first.hurry);
  await first.stop();
  const due = () => api.sql('select due_at from deliveries where failures = 1');
  const before = await due();
  const second = worker();
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  second.hurry();
  await shop.until((all) => all.length === from + 2);
  await second.stop();
  expect(before).toHaveLength(1);
  expect(await due()).toEqual(before);
  expect(new Set(shop.received.slice(from).map(({ body }) => body.id)).size).toBe(2);
});

test('a secret that was replaced while the clock was fast signs along for a day after that was set right, and no longer', async () => {
  const sent = async (): Promise<boolean> => {
    const from = shop.received.length;
    const sender = worker();
    await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
    sender.hurry();
    const [got] = (await shop.until((all) => all.length > from)).slice(from);
    await sender.stop();
    return isSignedBy(got as Received, webhook.secret);
  };
  await set(FAST_SECONDS);
  await api.call('/rotate_webhook_secret', { webhook_id: webhook.id });
  await set(-FAST_SECONDS);
  expect(await sent()).toBe(true);
  await set(86_399);
  expect(await sent()).toBe(true);
  await set(2);
  expect(await sent()).toBe(false);
});
