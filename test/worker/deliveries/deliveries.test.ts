// Events are delivered to merchants' endpoints: signed, with the same id and body at every attempt, on the schedule, whatever the receiver
// answers and whoever else is away.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventKey } from '../../../src/core/events.ts';
import { RETRY_AFTER_MS } from '../../../src/core/webhooks.ts';
import { createWebhookSender } from '../../../src/outside/webhooks/sender.ts';
import { createDeliveries, type Deliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { type Loop, startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { isSignedBy, type Received, type Receiver, startReceiver, take } from '../../support/webhook-receiver.ts';

let api: ApiServer;
let stopWorker: () => Promise<void>;
let loop: Loop;
let troubles: string[] = [];
const receivers: Receiver[] = [];
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());
beforeEach(async () => {
  troubles = [];
  await api.reopen();
  stopWorker = await worker();
});
afterEach(async () => {
  await stopWorker();
  for (const one of receivers.splice(0)) one.close();
  await api.sql('delete from webhooks');
  await api.sql('delete from deliveries');
});

/** The job of one worker, woken as main/worker does. */
async function worker(): Promise<() => Promise<void>> {
  const deliveries: Deliveries = createDeliveries(api.ctx, createWebhookSender(api.ctx.ports.outbound), (what, error) =>
    troubles.push(`${what}: ${error}`),
  );
  const mine = startLoop([deliveries.job], (_job, error) => troubles.push(String(error)));
  loop = mine;
  const stop = await api.ctx.db.listen(
    ['hurry'],
    (_channel, jobs) => mine.hurry(jobs),
    () => mine.hurry(),
  );
  return async () => {
    await stop();
    await mine.stop();
    await deliveries.finish(AbortSignal.timeout(500));
  };
}

async function receiver(...answer: Parameters<typeof startReceiver>): Promise<Receiver> {
  const made = await startReceiver(...answer);
  receivers.push(made);
  return made;
}
const subscribe = async (url: string, body: object = {}, username = 'shop') =>
  (await api.call('/create_webhook', { url, ...body }, {}, username)).json.webhook as { id: string; secret: string };
async function started(username = 'shop'): Promise<string> {
  const { json } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, username);
  return json.transaction_id;
}
const cancel = (transaction_id: string) => api.call('/cancel_transaction', { transaction_id });
const of = (objectId: string) => (got: Received) => eventKey(got.body.id)?.objectId === objectId;
const waiting = async (): Promise<number> => (await api.sql('select count(*)::int as n from deliveries'))[0].n;
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}
function expectNow({ headers }: Received): void {
  expect(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp']))).toBeLessThan(60);
}
/** Time passes on the service's clock, and the worker is told. */
function pass(ms: number): void {
  api.advance(ms / 1000);
  // those of before may have ended
  api.tokens.clear();
  loop.hurry();
}

test('every event of a merchant arrives, signed, as list_events shows it, and nothing waits afterwards', async () => {
  const shop = await receiver();
  const stranger = await receiver();
  const { secret } = await subscribe(shop.url);
  await subscribe(stranger.url, {}, 'other');
  const id = await started();
  await cancel(id);
  const received = await shop.until((all) => all.length === 2);
  const { json } = await api.call('/list_events', { object: id });
  const bodies = received.map(({ body }) => body).sort((a, b) => b.sequence - a.sequence);
  expect(bodies).toEqual(json.data);
  expect(bodies.map(({ type }) => type)).toEqual(['transaction.cancelled', 'transaction.started']);
  for (const got of received) {
    expect(got.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': got.body.id });
    expectNow(got);
    expect(isSignedBy(got, secret)).toBe(true);
    expect(isSignedBy(got, 'whsec_AAAA')).toBe(false);
  }
  await until(async () => (await waiting()) === 0);
  expect(stranger.received).toEqual([]);
});

test('an endpoint gets the types it asked for, from when it was made', async () => {
  const shop = await receiver();
  const before = await started();
  await subscribe(shop.url, { events: ['transaction.cancelled'] });
  await cancel(before);
  const after = await started();
  await cancel(after);
  const received = await shop.until((all) => all.length === 2);
  expect(received.map(({ body }) => body.type)).toEqual(['transaction.cancelled', 'transaction.cancelled']);
});

test('what was not taken comes again on the schedule, with the same id and body, and then no more', async () => {
  const shop = await receiver((_got, response) => take(response, 500));
  const { secret } = await subscribe(shop.url);
  const id = await started();
  await shop.until((all) => all.length === 1);
  for (const [n, pause] of RETRY_AFTER_MS.entries()) {
    await until(async () => (await api.sql('select failures from deliveries'))[0]?.failures === n + 1);
    const [{ due }] = await api.sql('select (extract(epoch from due_at) * 1000)::float8 as due from deliveries');
    expect(due - api.now()).toBeGreaterThanOrEqual(pause);
    expect(due - api.now()).toBeLessThanOrEqual(pause * 1.1 + 1);
    pass(pause - 1);
    pass(pause * 0.1 + 2);
    await shop.until((all) => all.length === n + 2);
  }
  await until(async () => (await waiting()) === 0);
  pass(48 * 3_600_000);
  const received = shop.received.filter(of(id));
  expect(received).toHaveLength(10);
  expect(new Set(received.map(({ text }) => text)).size).toBe(1);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  // receivers know the time, however far the sandbox's clock was moved
  received.forEach(expectNow);
  expect(received.every((got) => isSignedBy(got, secret))).toBe(true);
  const attempts = await api.sql('select status, error, answer, took_ms from delivery_attempts where status = 500');
  expect(attempts).toHaveLength(10);
});

test('an attempt is kept with its answer, or with what kept it from one', async () => {
  const shop = await receiver((_got, response) => response.writeHead(503).end('x'.repeat(5_000)));
  await subscribe(shop.url);
  await subscribe('http://127.0.0.1:1/');
  const id = await started();
  const noted = () =>
    api.sql(
      `select a.status, a.error, length(a.answer) as answer from delivery_attempts a join events e on e.id = a.event_id
        where e.object_id = $1 order by status`,
      [id],
    );
  await until(async () => (await noted()).length === 2);
  expect(await noted()).toEqual([
    { status: 503, error: null, answer: 1_024 },
    { status: null, error: expect.stringMatching(/^connection_failed: /), answer: 0 },
  ]);
});

test('a redirect is a failure, and is not followed', async () => {
  const victim = await receiver();
  const shop = await receiver((_got, response) => response.writeHead(302, { location: victim.url }).end());
  await subscribe(shop.url);
  await started();
  await until(async () => (await api.sql('select failures from deliveries'))[0]?.failures === 1);
  expect(victim.received).toEqual([]);
});

test('a receiver that answers 410 gets nothing more, and what waited for it is forgotten', async () => {
  const shop = await receiver((_got, response) => take(response, 410));
  const { id } = await subscribe(shop.url);
  await started();
  await until(async () => (await api.call('/list_webhooks', {})).json.data[0].enabled === false);
  await until(async () => (await waiting()) === 0);
  const received = shop.received.length;
  const second = await started();
  const { json } = await api.call('/redeliver_event', {
    event_id: (await api.call('/list_events', { object: second })).json.data[0].id,
  });
  expect(json).toEqual({ success: true, webhooks: 0 });
  expect(shop.received).toHaveLength(received);
  expect((await api.call('/list_webhooks', {})).json.data[0].id).toBe(id);
});

test('an endpoint that was deleted gets nothing more, also not what waited for it', async () => {
  const shop = await receiver((_got, response) => take(response, 500));
  const { id } = await subscribe(shop.url);
  await started();
  await until(async () => (await api.sql('select failures from deliveries'))[0]?.failures === 1);
  await api.call('/delete_webhook', { webhook_id: id });
  pass(10_000);
  await until(async () => (await waiting()) === 0);
  expect(shop.received).toHaveLength(1);
});

test('after a rotation both secrets sign for a day, then the new one alone', async () => {
  const shop = await receiver();
  const { id, secret: old } = await subscribe(shop.url);
  const { json } = await api.call('/rotate_webhook_secret', { webhook_id: id });
  const { secret: middle } = json.webhook;
  const newest = (await api.call('/rotate_webhook_secret', { webhook_id: id })).json.webhook.secret;
  await started();
  const [first] = await shop.until((all) => all.length === 1);
  expect([newest, middle, old].map((secret) => isSignedBy(first as Received, secret))).toEqual([true, true, true]);
  pass(86_401_000);
  await api.reopen();
  await started();
  const [, second] = await shop.until((all) => all.length === 2);
  expect([newest, middle, old].map((secret) => isSignedBy(second as Received, secret))).toEqual([true, false, false]);
});

test('redelivering sends an event again, of whatever age, with its id and body, and with all its attempts', async () => {
  const shop = await receiver();
  const id = await started();
  await subscribe(shop.url);
  pass(40 * 86_400_000);
  const [event] = (await api.call('/list_events', { object: id })).json.data;
  expect((await api.call('/redeliver_event', { event_id: event.id })).json).toEqual({ success: true, webhooks: 1 });
  const [first] = await shop.until((all) => all.length === 1);
  expect(first?.body).toEqual(event);
  await api.call('/redeliver_event', { event_id: event.id });
  const [, second] = await shop.until((all) => all.length === 2);
  expect(second?.text).toBe(first?.text);
});

test('an endpoint that never answers delays no other', async () => {
  const open = new Set<unknown>();
  const hanging = await receiver((_got, response) => void open.add(response));
  const shop = await receiver();
  for (let n = 0; n < 15; n++) await subscribe(`${hanging.url}/${n}`);
  await subscribe(shop.url);
  const ids = await Promise.all(Array.from({ length: 60 }, () => started()));
  const received = await shop.until((all) => all.length === 60);
  expect(new Set(received.map(({ body }) => eventKey(body.id)?.objectId))).toEqual(new Set(ids));
  // no endpoint that is new or slow has more than two at a time
  expect(open.size).toBeLessThanOrEqual(30);
});

test('an endpoint that is away rests, and gets everything soon after it is back', async () => {
  const shop = await receiver((_got, response) => take(response, 503));
  await subscribe(shop.url);
  await Promise.all(Array.from({ length: 20 }, () => started()));
  // five times away: it rests, and is not asked for every event
  await shop.until((all) => all.length >= 5);
  expect(shop.received.length).toBeLessThan(12);
  shop.answerWith((_got, response) => take(response));
  pass(61_000);
  await until(async () => {
    pass(6_000);
    return (await waiting()) === 0;
  });
  expect(new Set(shop.received.map(({ body }) => body.id)).size).toBe(20);
});

test('what waited while no worker ran is delivered when one starts', async () => {
  const shop = await receiver();
  await subscribe(shop.url);
  await stopWorker();
  const id = await started();
  await cancel(id);
  expect(shop.received).toEqual([]);
  stopWorker = await worker();
  const received = await shop.until((all) => all.length === 2);
  expect(new Set(received.map(({ body }) => body.sequence))).toEqual(new Set([1, 2]));
});

test('of two workers one delivers, and the other when that one ends', async () => {
  const shop = await receiver();
  await subscribe(shop.url);
  await started();
  await shop.until((all) => all.length === 1);
  const second = await worker();
  await started();
  await shop.until((all) => all.length === 2);
  await until(async () => (await waiting()) === 0);
  expect(shop.received).toHaveLength(2);
  await stopWorker();
  stopWorker = second;
  await started();
  await shop.until((all) => all.length === 3);
});

test('a secret that cannot be opened is reported, and others are served', async () => {
  const [shop, lost] = [await receiver(), await receiver()];
  const { id } = await subscribe(lost.url);
  await api.sql(`update webhooks set secret = 'sealed:!' where id = $1`, [id]);
  await subscribe(shop.url);
  await started();
  await shop.until((all) => all.length === 1);
  await until(async () => troubles.length > 0);
  expect(troubles[0]).toContain(id);
  expect(lost.received).toEqual([]);
});
