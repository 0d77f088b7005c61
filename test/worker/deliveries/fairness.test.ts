// Endpoints that are slow, however many merchants have them, leave turns for everybody else.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addMerchant } from '../../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../../src/flow/transactions/life.ts';
import { createWebhookSender } from '../../../src/outside/webhooks/sender.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi, PASSWORD } from '../../http/api-server.ts';
import { startReceiver, take } from '../../support/webhook-receiver.ts';

const MERCHANTS = 7;
const WEBHOOKS = 16;
const EVENTS = 20;
const SLOW_MS = 1_500;
let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('a new endpoint has its turn long before the slow ones of others are through', { timeout: 60_000 }, async () => {
  const slow = await startReceiver((_got, response) => void setTimeout(() => take(response), SLOW_MS).unref());
  const shop = await startReceiver();
  const create = (merchantId: bigint) =>
    createTransaction(api.ctx, { merchantId, usdMinor: 25_00n, method: 'BTC', label: null, email: null });
  for (let n = 0; n < MERCHANTS; n++) {
    const { affiliateId } = await addMerchant(api.ctx, {
      username: `slow-${n}`,
      password: PASSWORD,
      email: 'a@example.com',
      businessName: 'S',
    });
    const [{ id }] = await api.sql('select id from merchants where affiliate_id = $1', [affiliateId]);
    await api.sql(
      `insert into webhooks (id, merchant_id, url, secret, created_at)
         select 'wh_' || $1::bigint || 'x' || n, $1::bigint, $2, 'whsec_AAAA', now() from generate_series(1, $3::int) n`,
      [id, slow.url, WEBHOOKS],
    );
    for (let event = 0; event < EVENTS; event++) await create(BigInt(id));
  }
  const deliveries = createDeliveries(api.ctx, createWebhookSender(api.ctx.ports.outbound), () => undefined);
  const loop = startLoop([deliveries.job], () => undefined);
  const stop = await api.ctx.db.listen(
    ['hurry'],
    (_channel, jobs) => loop.hurry(jobs),
    () => undefined,
  );
  try {
    // the slow ones hold everything that endpoints like them may
    await slow.until((all) => all.length >= 192);
    await api.call('/create_webhook', { url: shop.url });
    await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
    await shop.until((all) => all.length === 1);
    const [{ left }] = await api.sql('select count(*)::int as left from deliveries');
    expect(left).toBeGreaterThan((MERCHANTS * WEBHOOKS * EVENTS) / 2);
  } finally {
    await stop();
    await loop.stop();
    await deliveries.finish(AbortSignal.timeout(100));
    for (const one of [slow, shop]) one.close();
  }
});
