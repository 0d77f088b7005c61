// Endpoints that are slow, however many merchants have them, leave turns for everybody else.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { WebhookSender } from '../../../src/core/webhooks.ts';
import { createTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { createWebhookSender } from '../../../src/outside/webhooks/sender.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { eventually } from '../../support/service.ts';
import { startReceiver, take } from '../../support/webhook-receiver.ts';
import { wereAway as addAbsences, addMerchantsAt, addMoreWebhooks, WEBHOOKS } from './crowd.ts';

const MERCHANTS = 7;
const EVENTS = 20;
const SLOW_MS = 1_500;
let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

afterEach(async () => {
  await api.sql('delete from webhooks');
  await api.sql('delete from deliveries');
});

const merchantsAt = (url: string, events: number, count = MERCHANTS) => addMerchantsAt(api, url, { events, count });
async function delivering(work: () => Promise<void>, ctx = api.ctx, send?: WebhookSender): Promise<void> {
  const deliveries = createDeliveries(ctx, send ?? createWebhookSender(ctx.ports.outbound), () => undefined);
  const loop = startLoop([deliveries.job], () => undefined);
  const stop = await api.ctx.db.listen(
    ['hurry'],
    (_channel, jobs) => loop.hurry(jobs),
    () => undefined,
  );
  try {
    await work();
  } finally {
    await stop();
    await loop.stop();
    await deliveries.finish(AbortSignal.timeout(100));
  }
}
const started = () => api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });

test('a new endpoint has its turn long before the slow ones of others are through', { timeout: 60_000 }, async () => {
  const slow = await startReceiver((_got, response) => void setTimeout(() => take(response), SLOW_MS).unref());
  const shop = await startReceiver();
  await merchantsAt(slow.url, EVENTS);
  await delivering(async () => {
    // the slow ones hold everything that endpoints like them may
    await slow.until((all) => all.length >= 192);
    await api.call('/create_webhook', { url: shop.url });
    await started();
    await shop.until((all) => all.length === 1);
    const [{ left }] = await api.sql('select count(*)::int as left from deliveries');
    expect(left).toBeGreaterThan((MERCHANTS * WEBHOOKS * EVENTS) / 2);
  });
  for (const one of [slow, shop]) one.close();
});

test('the newest endpoint is tried at once beside hundreds that nothing is known of and that never answer', {
  timeout: 60_000,
}, async () => {
  const away = await startReceiver(() => undefined);
  const shop = await startReceiver();
  await merchantsAt(away.url, 2, 30);
  const before = await timeouts();
  await delivering(async () => {
    // all that they share, and half of what is kept for new ones
    await away.until((all) => all.length >= 120 + 24);
    await api.call('/create_webhook', { url: shop.url });
    await started();
    await shop.until((all) => all.length === 1);
    expect(await timeouts()).toBe(before);
  });
  for (const one of [away, shop]) one.close();
});

/** What these endpoints did the days before: all answered, after so long. */
const tookBefore = (url: string, ms: number) =>
  api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
       select number, 0, now() - n * interval '1 day', $2, 204, '' from webhooks, generate_series(1, 5) n where url = $1`,
    [url, ms],
  );

test.each([
  [1, 16],
  [25, 60],
])(
  'endpoints of %i merchants that answer after 12 seconds take nothing from one that needs 1.5 s, nor from a quick one',
  {
    timeout: 60_000,
  },
  async (count, held) => {
    const [crowd, slower, quick] = ['http://127.0.0.1:9/crowd', 'http://127.0.0.1:9/slower', 'http://127.0.0.1:9/quick'];
    await merchantsAt(crowd, 1, count);
    for (const url of [slower, quick]) await api.call('/create_webhook', { url });
    const usual: Record<string, number> = { [crowd]: 12_000, [slower]: 1_500, [quick]: 5 };
    const sent: Record<string, number> = { [crowd]: 0, [slower]: 0, [quick]: 0 };
    for (const [url, ms] of Object.entries(usual)) await tookBefore(url, ms);
    const isOver = Promise.withResolvers<void>();
    const send: WebhookSender = async ({ url }) => {
      sent[url] = (sent[url] ?? 0) + 1;
      // nobody of the crowd answers meanwhile
      if (url === crowd) await isOver.promise;
      return { kind: 'answered', status: 204, body: new Uint8Array(), isCut: false, tookMs: usual[url] ?? 0 };
    };
    async function work(): Promise<void> {
      await eventually('the crowd has what it may', () => (sent[crowd] ?? 0) >= held);
      for (let n = 0; n < 20; n++) await started();
      await eventually('all others have arrived', () => sent[slower] === 20 && sent[quick] === 20);
      expect(sent[crowd]).toBeLessThanOrEqual(64);
    }
    await delivering(() => work().finally(isOver.resolve), api.ctx, send);
  },
);

const wereAway = (attempts?: number) => addAbsences(api, attempts);
const timeouts = async () => (await api.sql('select count(*)::int as n from delivery_attempts where status is null'))[0].n;

test('an endpoint that was there and failed once has its turn at once beside hundreds that have never answered', {
  timeout: 60_000,
}, async () => {
  const away = await startReceiver(() => undefined);
  const shop = await startReceiver();
  await api.call('/create_webhook', { url: shop.url });
  await api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
       select max(number), 0, now() - interval '2 days', 9, 204, '' from webhooks`,
  );
  await merchantsAt(away.url, 1, 30);
  await wereAway(1);
  await delivering(async () => {
    await away.until((all) => all.length === 120);
    const before = await timeouts();
    await started();
    await shop.until((all) => all.length === 1);
    expect(await timeouts()).toBe(before);
  });
  for (const one of [away, shop]) one.close();
});

test('a merchant that has as much under way as it may keeps no new endpoint of others waiting', { timeout: 60_000 }, async () => {
  const [away, busy, shop] = [await startReceiver(() => undefined), await startReceiver(() => undefined), await startReceiver()];
  await merchantsAt(away.url, 1, 10);
  await wereAway(1);
  await merchantsAt(busy.url, 0, 1);
  const [{ id }] = await api.sql('select max(merchant_id) as id from webhooks');
  // as many as a merchant may have under way, with one event each
  await addMoreWebhooks(api, id, busy.url, 64 - WEBHOOKS);
  await api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
       select number, 0, now() - n * interval '1 day', 9, 204, '' from webhooks, generate_series(1, 5) n where merchant_id = $1`,
    [id],
  );
  const sell = async (count: number) => {
    for (let n = 0; n < count; n++)
      await createTransaction(api.ctx, { merchantId: BigInt(id), usdMinor: 25_00n, method: 'BTC', label: null, email: null });
  };
  await delivering(async () => {
    // what has not answered has all that it may, and so has the merchant whose endpoints were quick
    await away.until((all) => all.length === 120);
    await sell(1);
    await busy.until((all) => all.length === 64);
    const before = await timeouts();
    await api.call('/create_webhook', { url: shop.url });
    await api.sql(
      `insert into webhooks (id, merchant_id, url, secret, created_at) values ('wh_newest', $1, $2, 'whsec_AAAA', now())`,
      [id, busy.url],
    );
    await sell(1);
    await started();
    await shop.until((all) => all.length === 1);
    expect([await timeouts(), busy.received.length]).toEqual([before, 64]);
  });
  for (const one of [away, busy, shop]) one.close();
});

test('an endpoint behind hundreds that hang has its turn at once, though nothing else happens', { timeout: 60_000 }, async () => {
  const away = await startReceiver(() => undefined);
  const shop = await startReceiver();
  // more than are filled up at once
  await merchantsAt(away.url, 1, 30);
  await wereAway();
  await api.call('/create_webhook', { url: shop.url });
  await started();
  const [{ before }] = await api.sql('select count(*)::int as before from delivery_attempts where status is null');
  await delivering(async () => {
    await shop.until((all) => all.length === 1);
    const [{ after }] = await api.sql('select count(*)::int as after from delivery_attempts where status is null');
    expect(after).toBe(before);
  });
  for (const one of [away, shop]) one.close();
});

test('endpoints that have been away for long delay no other after a worker has begun: what is known of them is kept', {
  timeout: 60_000,
}, async () => {
  const away = await startReceiver(() => undefined);
  const [known, fresh] = [await startReceiver(), await startReceiver()];
  await merchantsAt(away.url, 3);
  await wereAway();
  const { webhook } = (await api.call('/create_webhook', { url: known.url })).json;
  await api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer) select number, 0, now() - interval '1 day', 9, 204, '' from webhooks where id = $1`,
    [webhook.id],
  );
  await api.sql('delete from deliveries where webhook = (select max(number) from webhooks)');
  const [{ before }] = await api.sql('select count(*)::int as before from delivery_attempts where status is null');
  await delivering(async () => {
    await away.until((all) => all.length >= 96);
    await started();
    await known.until((all) => all.length === 1);
    await api.call('/create_webhook', { url: fresh.url });
    await started();
    await fresh.until((all) => all.length === 1);
    // none of those that are away has given its connection back
    const [{ after }] = await api.sql('select count(*)::int as after from delivery_attempts where status is null');
    expect([after, away.received.length]).toEqual([before, 96]);
  });
  for (const one of [away, known, fresh]) one.close();
});

test('answers that come as fast as results are written keep nobody from being looked at', { timeout: 60_000 }, async () => {
  const crowd = 'http://127.0.0.1:9/crowd';
  await merchantsAt(crowd, 32, 1);
  // all were quick
  await api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
       select number, 0, now() - n * interval '1 day', 9, 204, '' from webhooks, generate_series(1, 5) n`,
  );
  const { webhook } = (await api.call('/create_webhook', { url: 'http://127.0.0.1:9/shop' })).json;
  const waiting: (() => void)[] = [];
  const arrived = Promise.withResolvers<void>();
  let answered = 0;
  let isOver = false;
  const answer = { kind: 'answered', status: 204, body: new Uint8Array(), isCut: false, tookMs: 1 } as const;
  async function send({ url }: { readonly url: string }) {
    if (url !== crowd) arrived.resolve();
    else if (!isOver) await new Promise<void>((resolve) => waiting.push(resolve));
    return answer;
  }
  // one more while each result is written
  const next = (): void => {
    if (waiting.length > 0) answered += 1;
    waiting.shift()?.();
  };
  const query = ((statement) => {
    if (statement.name === 'write_attempts') next();
    return api.ctx.db.query(statement);
  }) as Sql['query'];
  await delivering(
    async () => {
      while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      next();
      await started();
      await arrived.promise;
      expect(answered).toBeLessThan(WEBHOOKS * 32);
      isOver = true;
      for (const go of waiting) go();
    },
    { ...api.ctx, db: { ...api.ctx.db, query } },
    send,
  );
  await api.sql('delete from webhooks where id = $1', [webhook.id]);
});

test('once everything has arrived the job rests, also where the last connections were kept for new endpoints', {
  timeout: 60_000,
}, async () => {
  await merchantsAt('http://127.0.0.1:1/', 1, 10);
  const [{ count }] = await api.sql('select count(*)::int as count from webhooks');
  const taken = { kind: 'answered', status: 204, body: new Uint8Array(), isCut: false, tookMs: 1 } as const;
  let sent = 0;
  let answer = (): void => undefined;
  const isAnswered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const send: WebhookSender = async () => {
    sent += 1;
    await isAnswered;
    return taken;
  };
  const { job, finish } = createDeliveries(api.ctx, send, () => undefined);
  while (await job.run(true));
  expect(sent).toBeGreaterThan(120);
  expect(sent).toBeLessThan(count);
  answer();
  await eventually('each answer has begun another', () => sent === count);
  const pauseMs = async (): Promise<number> => {
    await job.run();
    return (job.everyMs as (chance: number) => number)(0);
  };
  await eventually('it rests', async () => (await pauseMs()) === 60_000);
  expect(await api.sql('select from deliveries')).toEqual([]);
  await finish(AbortSignal.timeout(500));
});
