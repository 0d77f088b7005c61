// Events and webhooks over real HTTP on a real database: made, listed, given another secret, removed; refused as the contract says.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MERCHANT_API } from '../../src/contract/merchant-api.ts';
import { type Components, documentSchema } from '../../src/contract/shapes.ts';
import { EVENT_TYPES, eventId } from '../../src/core/events.ts';
import { createSealing } from '../../src/outside/sealing.ts';
import { fits } from '../support/schema-check.ts';
import { type ApiServer, makeApi, PASSWORD, type Reply } from './api-server.ts';

const HOOK = 'http://127.0.0.1:9/hook';
let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const create = (body: object = {}, headers: Record<string, string> = {}, username = 'shop') =>
  api.call('/create_webhook', { url: HOOK, ...body }, headers, username);
const listed = async (body: object = {}) => (await api.call('/list_webhooks', body)).json;
const refused = ({ status, json }: Reply) => [status, json.error, json.param];
const removeAll = () => api.sql('delete from webhooks');
async function started(username = 'shop'): Promise<string> {
  const { json } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, username);
  return json.transaction_id;
}

describe('a webhook', () => {
  test('shows its secret when it is made and when that is replaced, and never again', async () => {
    const { json: made } = await create();
    expect(made).toEqual({
      success: true,
      webhook: { id: expect.stringMatching(/^wh_\w{22}$/), url: HOOK, secret: expect.stringMatching(/^whsec_[\w+/]{43}=$/) },
    });
    const { json: replaced } = await api.call('/rotate_webhook_secret', { webhook_id: made.webhook.id });
    expect(replaced).toEqual({ success: true, webhook: { ...made.webhook, secret: expect.stringMatching(/^whsec_/) } });
    expect(replaced.webhook.secret).not.toBe(made.webhook.secret);
    const list = await listed();
    expect(list).toEqual({
      success: true,
      data: [
        { id: made.webhook.id, url: HOOK, events: EVENT_TYPES, enabled: true, created_at: new Date(api.now()).toISOString() },
      ],
      has_more: false,
    });
    expect(JSON.stringify(list)).not.toContain('whsec_');
    await removeAll();
  });

  test('gets the types it asked for, each named once', async () => {
    const events = ['transaction.succeeded', 'payout.completed', 'transaction.succeeded'];
    const { json } = await create({ events });
    expect((await listed()).data[0]).toMatchObject({
      id: json.webhook.id,
      events: ['transaction.succeeded', 'payout.completed'],
    });
    await removeAll();
  });

  test('is removed, and then is not there', async () => {
    const { json } = await create();
    const named = { webhook_id: json.webhook.id };
    expect((await api.call('/delete_webhook', named)).json).toEqual({ success: true });
    for (const path of ['/delete_webhook', '/rotate_webhook_secret'])
      expect(refused(await api.call(path, named))).toEqual([404, 'not_found', 'webhook_id']);
    expect((await listed()).data).toEqual([]);
  });

  test('of another merchant is not there either', async () => {
    const { json } = await create({}, {}, 'other');
    for (const path of ['/delete_webhook', '/rotate_webhook_secret'])
      expect(refused(await api.call(path, { webhook_id: json.webhook.id }))).toEqual([404, 'not_found', 'webhook_id']);
    expect(refused(await api.call('/list_webhooks', { starting_after: json.webhook.id }))).toEqual([
      404,
      'not_found',
      'starting_after',
    ]);
    expect((await listed()).data).toEqual([]);
    await removeAll();
  });

  test('is one of at most 16, also when many are made at once', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => create()));
    expect(made.filter(({ status }) => status === 200)).toHaveLength(16);
    for (const reply of made.filter(({ status }) => status !== 200))
      expect(refused(reply)).toEqual([409, 'too_many_webhooks', undefined]);
    expect((await create({}, {}, 'other')).status).toBe(200);
    const whole = (await listed()).data;
    expect(whole).toHaveLength(16);
    const { data, has_more } = await listed({ limit: 10 });
    expect([data, has_more]).toEqual([whole.slice(0, 10), true]);
    const rest = await listed({ limit: 10, starting_after: data.at(-1).id });
    expect([rest.data, rest.has_more]).toEqual([whole.slice(10), false]);
    await removeAll();
  });

  test('too many has one answer for one key', async () => {
    for (let n = 0; n < 16; n++) await create();
    const key = { 'idempotency-key': 'webhook-17' };
    const first = await create({}, key);
    expect(refused(first)).toEqual([409, 'too_many_webhooks', undefined]);
    await removeAll();
    const again = await create({}, key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
    expect((await listed()).data).toEqual([]);
  });

  test('whose secret is replaced several times at once keeps every one of them, and of many the last 32', async () => {
    const { webhook } = (await create()).json;
    const rotate = async () => (await api.call('/rotate_webhook_secret', { webhook_id: webhook.id })).json.webhook.secret;
    const made = await Promise.all(Array.from({ length: 6 }, rotate));
    const stored = async () => {
      const [{ secret, former_secrets: former }] = await api.sql('select secret, former_secrets from webhooks');
      return [secret, ...former.map((one: { secret: string }) => one.secret)];
    };
    expect(await stored()).toHaveLength(7);
    expect(new Set(await stored())).toEqual(new Set([webhook.secret, ...made]));
    for (let n = 0; n < 30; n++) made.push(await rotate());
    expect(await stored()).toHaveLength(33);
    expect((await stored()).slice(0, 4)).toEqual(made.slice(-4).reverse());
    await removeAll();
  });

  test('is made once for one key, and the stored answer shows the same secret', async () => {
    const key = { 'idempotency-key': 'webhook-1' };
    const [first, again] = [await create({}, key), await create({}, key)];
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect((await listed()).data).toHaveLength(1);
    expect(refused(await create({ url: `${HOOK}/2` }, key))).toEqual([409, 'idempotency_conflict', 'idempotency_key']);
    await removeAll();
  });
});

test.each([
  ['without a key', {}],
  ['with one', { 'idempotency-key': 'webhook-before' }],
])(
  'a webhook is answered when what was being written before it is in the list, %s',
  async (_how, key: Record<string, string>) => {
    const id = await started();
    const [written, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = api.ctx.db.transaction(async (sql) => {
      await sql.query({
        text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
               select merchant_id, id, 2, 'transaction.reorged', 'started', 'started', 'a test', now() from transactions where id = $1`,
        values: [id],
      });
      written.resolve();
      await ended.promise;
    });
    await written.promise;
    let isAnswered = false;
    const making = create({}, key).finally(() => {
      isAnswered = true;
    });
    while ((await api.sql('select from webhooks')).length === 0);
    const after = await started();
    expect(isAnswered).toBe(false);
    ended.resolve();
    await writing;
    expect((await making).status).toBe(200);
    const { data } = (await api.call('/list_events', { object: id })).json;
    expect(data.map(({ sequence }: { sequence: number }) => sequence)).toEqual([2, 1]);
    // each event is sent there or was in the list before
    const sent = await api.sql('select e.object_id from deliveries d join events e on e.id = d.event_id');
    expect(sent).toEqual([{ object_id: after }]);
    await removeAll();
    await api.sql('delete from deliveries');
  },
);

describe('refused is', () => {
  test.each([
    ['no URL', {}, 'missing_field'],
    ['a number', { url: 1 }, 'invalid_request'],
    ['an empty URL', { url: '' }, 'invalid_request'],
    ['no absolute URL', { url: '/hook' }, 'invalid_request'],
    ['another scheme', { url: 'ftp://shop.example.com/' }, 'invalid_request'],
    ['a URL with a password', { url: 'http://user:secret@127.0.0.1/' }, 'invalid_request'],
    ['a URL of 10 kB', { url: `http://127.0.0.1/${'a'.repeat(10_000)}` }, 'invalid_request'],
    ['a URL with a line feed', { url: 'http://127.0.0.1/\nx' }, 'invalid_request'],
  ])('%s', async (_what, body, error) => {
    expect(refused(await api.call('/create_webhook', body))).toEqual([400, error, 'url']);
    expect((await listed()).data).toEqual([]);
  });

  test.each([
    ['an unknown type', ['transaction.paid']],
    ['no type', []],
    ['no list', 'transaction.succeeded'],
    ['a number', [1]],
  ])('%s', async (_what, events) => {
    expect(refused(await create({ events }))).toEqual([400, 'invalid_request', 'events']);
  });

  test('a user without the scope', async () => {
    const id = { webhook_id: 'wh_x', event_id: 'evt_x', url: HOOK };
    for (const path of ['/create_webhook', '/delete_webhook', '/rotate_webhook_secret', '/redeliver_event'])
      expect(refused(await api.call(path, id, {}, 'only.read'))).toEqual([403, 'insufficient_permissions', undefined]);
    for (const path of ['/list_events', '/list_webhooks'])
      expect(refused(await api.call(path, {}, {}, 'only.payments'))).toEqual([403, 'insufficient_permissions', undefined]);
  });

  test('an event that is not the merchant’s own', async () => {
    const objectId = await started('other');
    for (const event_id of [eventId({ objectId, sequence: 1 }), 'evt_', 'nonsense', 'evt_t00000000000000000000001'])
      expect(refused(await api.call('/redeliver_event', { event_id }))).toEqual([404, 'not_found', 'event_id']);
    const id = eventId({ objectId, sequence: 1 });
    expect(refused(await api.call('/list_events', { starting_after: id }))).toEqual([404, 'not_found', 'starting_after']);
  });

  test('a wrong filter of events', async () => {
    const cases: [object, string][] = [
      [{ type: 'transaction.paid' }, 'type'],
      [{ object: 1 }, 'object'],
      [{ object: 'nope' }, 'object'],
      [{ object: 'transactions' }, 'object'],
      [{ object: 'txn_1' }, 'object'],
      [{ object: `wh_${'0'.repeat(22)}` }, 'object'],
      [{ object: `payout_${'0'.repeat(23)}` }, 'object'],
      [{ limit: 0 }, 'limit'],
      [{ limit: 101 }, 'limit'],
      [{ created_gte: 'yesterday' }, 'created_gte'],
    ];
    for (const [body, param] of cases)
      expect(refused(await api.call('/list_events', body))).toEqual([400, 'invalid_request', param]);
    const [object, ofKind] = [{ object: `payout_${'0'.repeat(22)}` }, { object: 'payout' }];
    for (const body of [object, ofKind]) expect((await api.call('/list_events', body)).json).toMatchObject({ data: [] });
  });
});

describe('outside the sandbox', () => {
  test('only https to public hosts is taken, and nobody who reads the database knows a secret', async () => {
    const real = await makeApi({ network: 'regtest', trustedProxies: ['127.0.0.1'] });
    try {
      const sealing = createSealing(new Uint8Array(32).fill(7));
      Object.assign(real.ctx.ports, { webhookSealing: sealing });
      const tls = { 'x-forwarded-proto': 'https' };
      const { json: pair } = await real.send('/auth', { username: 'shop', password: PASSWORD }, tls);
      real.tokens.set('shop', pair.access_token);
      const make = (url: string, headers: Record<string, string> = {}) =>
        real.call('/create_webhook', { url }, { ...tls, ...headers });
      for (const url of [
        'http://shop.example.com/',
        'https://127.0.0.1/',
        'https://[::1]/',
        'https://2130706433/',
        'https://shop.example.com:22/',
      ])
        expect(refused(await make(url))).toEqual([400, 'invalid_request', 'url']);
      const { json } = await make('https://shop.invalid/hook', { 'idempotency-key': 'sealed' });
      expect(json.webhook.secret).toMatch(/^whsec_/);
      const again = await make('https://shop.invalid/hook', { 'idempotency-key': 'sealed' });
      expect(again.json).toEqual(json);
      await real.call('/rotate_webhook_secret', { webhook_id: json.webhook.id }, tls);
      const stored = JSON.stringify([
        await real.sql('select w::text from webhooks w'),
        await real.sql('select k::text from idempotency_keys k'),
      ]);
      expect(stored).toContain('sealed:');
      expect(stored).not.toContain('whsec_');
    } finally {
      await real.end();
    }
  });
});

test('answers are what the documents say', async () => {
  await started();
  const { json: made } = await create();
  const components: Components = new Map();
  const replies: [keyof typeof MERCHANT_API, Reply][] = [
    ['createWebhook', await create()],
    ['listWebhooks', await api.call('/list_webhooks', {})],
    ['rotateWebhookSecret', await api.call('/rotate_webhook_secret', { webhook_id: made.webhook.id })],
    ['listEvents', await api.call('/list_events', {})],
    ['redeliverEvent', await api.call('/redeliver_event', { event_id: (await api.call('/list_events', {})).json.data[0].id })],
    ['deleteWebhook', await api.call('/delete_webhook', { webhook_id: made.webhook.id })],
  ];
  for (const [name, { json }] of replies)
    fits(json, documentSchema(MERCHANT_API[name].reply, components), Object.fromEntries(components) as never, name);
  await removeAll();
});
