// Where more endpoints are away than there are connections for them, their merchants have turns.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundResult } from '../../../src/core/outbound.ts';
import type { WebhookSender } from '../../../src/core/webhooks.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { addMerchantsAt, wereAway } from './crowd.ts';

const MOST_AWAY = 96;
const full: OutboundResult = { kind: 'answered', status: 503, body: new Uint8Array(), isCut: false, tookMs: 1 };

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('who has one endpoint that was away does not stand behind a merchant who has many', { timeout: 60_000 }, async () => {
  const [crowd, shop] = ['http://127.0.0.1:9/crowd', 'http://127.0.0.1:9/shop'];
  await api.call('/create_webhook', { url: shop });
  await addMerchantsAt(api, crowd, { events: 1, count: 10 });
  await wereAway(api);
  const sent: string[] = [];
  const answers: (() => void)[] = [];
  const send: WebhookSender = async ({ url }) => {
    sent.push(url);
    await new Promise<void>((resolve) => answers.push(resolve));
    return full;
  };
  const { job, finish } = createDeliveries(api.ctx, send, () => undefined);
  while (await job.run(true));
  expect(sent).toEqual(Array.from({ length: MOST_AWAY }, () => crowd));
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  while (await job.run(true));
  // the first connection that is given back is for it, though it came last
  answers[0]?.();
  await expect.poll(() => sent.length).toBe(MOST_AWAY + 1);
  expect(sent.at(-1)).toBe(shop);
  for (let n = 0; n < answers.length; n++) answers[n]?.();
  await finish(AbortSignal.timeout(100));
});
