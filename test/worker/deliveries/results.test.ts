// What becomes of a result that does not belong to what the database has now, of an event that cannot be told, and of what waits for an endpoint
// that has ended: nothing else is lost by it.
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { WebhookSender } from '../../../src/core/webhooks.ts';
import { createWebhookSender } from '../../../src/outside/webhooks/sender.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { unreadablePayout } from '../../support/unreadable-payout.ts';
import { type Receiver, startReceiver, take } from '../../support/webhook-receiver.ts';

let api: ApiServer;
let shop: Receiver;
const troubles: string[] = [];
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());
beforeEach(async () => {
  troubles.length = 0;
  shop = await startReceiver();
  await api.call('/create_webhook', { url: shop.url });
});
afterEach(async () => {
  shop.close();
  await api.sql('delete from webhooks');
  await api.sql('delete from deliveries');
});

const started = async (): Promise<string> =>
  (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' })).json.transaction_id;
const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
};
const waiting = async (): Promise<number> => (await api.sql('select from deliveries')).length;

async function delivering(work: (hurry: () => void) => Promise<void>, send?: WebhookSender): Promise<void> {
  const sender = send ?? createWebhookSender(api.ctx.ports.outbound);
  const deliveries = createDeliveries(api.ctx, sender, (what, error) => void troubles.push(`${what}: ${error}`));
  const loop = startLoop([deliveries.job], (_job, error) => void troubles.push(String(error)));
  try {
    await work(() => loop.hurry());
  } finally {
    await loop.stop();
    await deliveries.finish(AbortSignal.timeout(500));
  }
}
/** What a worker finds when a backup was put back under it. */
function replaceDatabase(): void {
  const { identity } = api.ctx.db;
  identity.look()({ durable: { test: 2n } });
  expect(() => identity.look()({ durable: { test: 1n } })).toThrow('may be another one');
}

test('a call that has not begun is no attempt: what waits keeps all of them, and when it is due', async () => {
  let [isBusy, asked] = [true, 0];
  const real = createWebhookSender(api.ctx.ports.outbound);
  const busy: WebhookSender = async (request) => {
    if (!isBusy) return real(request);
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { kind: 'failed', failure: 'failed_here', reason: 'its turn did not come', tookMs: 15_000, hasNotBegun: true };
  };
  const [id, tried] = [await started(), await started()];
  await api.sql(
    `update deliveries set failures = 9, due_at = '2020-01-01' from events e where e.id = event_id and e.object_id = $1`,
    [tried],
  );
  const rows = () => api.sql('select event_id, failures, due_at, asked from deliveries order by event_id');
  const before = await rows();
  await delivering(async () => {
    // more often than an event is tried
    await until(async () => asked >= 30);
    expect(await rows()).toEqual(before);
    isBusy = false;
    const received = await shop.until((all) => all.length === 2);
    expect(new Set(received.map(({ body }) => body.data.object.transaction_id))).toEqual(new Set([id, tried]));
    await until(async () => (await waiting()) === 0);
  }, busy);
  const [{ n }] = await api.sql(
    `select count(*)::int as n from delivery_attempts where error = 'failed_here: its turn did not come'`,
  );
  expect(n).toBe(asked);
});

test('endpoints on one host share no connection: what one is answered too much is not the other’s', async () => {
  const paths = new Map<Socket, Set<unknown>>();
  shop.answerWith((_got, response) => {
    const { socket, url } = response.req;
    paths.set(socket, (paths.get(socket) ?? new Set()).add(url));
    take(response);
  });
  await api.call('/create_webhook', { url: `${shop.url}/other` });
  await delivering(async (hurry) => {
    for (let n = 1; n <= 10; n++) {
      await started();
      hurry();
      await shop.until((all) => all.length === 2 * n);
    }
    await until(async () => (await waiting()) === 0);
  });
  expect([...paths.values()].filter(({ size }) => size > 1)).toEqual([]);
  await api.sql('delete from delivery_attempts');
});

test('a delivery that was on its way when the database was put back ends nothing in it: its number may be another event’s', async () => {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  shop.answerWith((_got, response) => {
    arrived.resolve();
    void answer.promise.then(() => take(response));
  });
  await started();
  await delivering(async (hurry) => {
    await arrived.promise;
    replaceDatabase();
    answer.resolve();
    hurry();
    // it is sent again, and only that ends it
    await shop.until((all) => all.length === 2);
    await until(async () => (await waiting()) === 0);
  });
  expect(new Set(shop.received.map(({ text }) => text)).size).toBe(1);
  expect(await api.sql('select status from delivery_attempts')).toHaveLength(1);
  await api.sql('delete from delivery_attempts');
});

test('an event that cannot be told, because its object cannot be opened, holds up no other of its endpoint', async () => {
  await unreadablePayout(api);
  const good = await started();
  await delivering(async () => {
    await shop.until((all) => all.some(({ body }) => body.data.object.transaction_id === good));
    await until(async () => (await api.sql('select from deliveries where failures = 1')).length === 1);
  });
  expect(shop.received.map(({ body }) => body.data.object.transaction_id)).toEqual([good]);
  expect(troubles).toHaveLength(1);
  expect(await api.sql('select status, error from delivery_attempts where error is not null')).toEqual([
    { status: null, error: expect.stringMatching(/^unreadable: /) },
  ]);
});

test('an event whose object is gone holds up no other, of whichever endpoint', async () => {
  const stranger = await startReceiver();
  await api.call('/create_webhook', { url: stranger.url }, {}, 'other');
  await api.sql(
    `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
       select id, 'txn_' || repeat('z', 22), 1, 'transaction.started', 'started', 'a test', now() from merchants where affiliate_id = $1`,
    [api.affiliateId],
  );
  const good = await started();
  const theirs = (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, 'other')).json;
  await delivering(async () => {
    await shop.until((all) => all.some(({ body }) => body.data.object.transaction_id === good));
    await stranger.until((all) => all.some(({ body }) => body.data.object.transaction_id === theirs.transaction_id));
    await until(async () => (await api.sql('select from deliveries where failures = 1')).length === 1);
  });
  expect(troubles).toEqual([expect.stringMatching(/^event evt_tz{22}1 for webhook wh_\w+: Error: txn_z{22} is gone$/)]);
  stranger.close();
});

test.each([
  ['answers 410', async () => void (await started())],
  [
    'is deleted',
    async () => {
      const [{ id }] = (await api.call('/list_webhooks', {})).json.data;
      await api.call('/delete_webhook', { webhook_id: id });
    },
  ],
])('what waits for its turn on the schedule is forgotten as soon as its endpoint %s', async (_what, end) => {
  shop.answerWith((_got, response) => take(response, 500));
  await started();
  await delivering(async (hurry) => {
    await until(async () => (await api.sql('select from deliveries where failures = 1')).length === 1);
    await api.sql('update deliveries set due_at = $1', [new Date(api.now() + 36_000_000)]);
    shop.answerWith((_got, response) => take(response, 410));
    await end();
    hurry();
    await until(async () => (await waiting()) === 0);
  });
});

test('what failed together does not come back together', async () => {
  await Promise.all(Array.from({ length: 8 }, started));
  await delivering(
    () => until(async () => (await api.sql('select from deliveries where failures = 1')).length === 8),
    async () => ({ kind: 'answered', status: 500, body: new Uint8Array(), isCut: false, tookMs: 1 }),
  );
  const due = await api.sql('select distinct due_at from deliveries');
  expect(due.length).toBeGreaterThan(1);
});

test('what a call failed by is kept without what a terminal or the database would stumble over', async () => {
  await started();
  const reason = 'a\u0000b\u001b[31mc\u202e';
  await delivering(
    () => until(async () => (await api.sql('select from deliveries where failures = 1')).length === 1),
    async () => ({ kind: 'failed', failure: 'connection_failed', reason, tookMs: 1 }),
  );
  const [{ error }] = await api.sql(`select error from delivery_attempts order by id desc limit 1`);
  expect(error).toBe('connection_failed: a?b?[31mc?');
  expect(troubles).toEqual([]);
});
