// Payouts over real HTTP on a real database: exactly the fields of the contract, keys, lists, settings.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MERCHANT_API } from '../../src/contract/merchant-api.ts';
import { type Components, documentSchema } from '../../src/contract/shapes.ts';
import { fits } from '../support/fits.ts';
import { FEE_MAX, fund, OUTSIDE, owe, tellFee } from '../support/funded.ts';
import { type ApiServer, makeApi, type Reply } from './api-server.ts';

let api: ApiServer;
let merchantId: bigint;
beforeAll(async () => {
  api = await makeApi();
  await tellFee(api.ctx);
  merchantId = BigInt((await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]))[0].id);
  await fund(api.ctx, merchantId, 100n * BTC);
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});
const BTC = 100_000_000n;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const OTHER = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
const LEGACY = 'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn';

const request = (body: object = {}, headers: Record<string, string> = {}, username = 'shop') =>
  api.call('/request_payout', { method: 'bitcoin', amount: '0.01', destination: OUTSIDE, ...body }, headers, username);
const check = async (payout_id: string) => (await api.call('/check_payout', { payout_id })).json.payout;
const balance = async (): Promise<string> => (await api.call('/get_account_info', {})).json.balances.BTC;
const refused = ({ status, json }: Reply) => [status, json.error, json.param];
/** One that waits. */
async function waiting(): Promise<string> {
  await owe(api.ctx, merchantId, 1n);
  const { json } = await request();
  await owe(api.ctx, merchantId, -1n);
  return json.payout.id;
}

describe('request and check', () => {
  test('request answers five fields; the amount as it was sent', async () => {
    const { status, json } = await request({ amount: '0.0500' });
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      payout: {
        id: expect.stringMatching(/^payout_[0-9A-Za-z]{22}$/),
        method: 'bitcoin',
        amount: '0.0500',
        status: 'processing',
        created_at: expect.stringMatching(TIME),
      },
    });
    expect(await check(json.payout.id)).toEqual({
      ...json.payout,
      fee: null,
      fee_currency: 'BTC',
      destination: OUTSIDE,
      txid: null,
      error: null,
      held_reason: null,
      completed_at: null,
    });
  });

  test('every standard kind of address of the network is a destination', async () => {
    for (const destination of [
      LEGACY,
      '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc',
      OTHER,
      'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
      'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6',
    ]) {
      expect((await request({ destination })).json, destination).toMatchObject({ success: true });
    }
  });

  test('the fee and the transaction are told when they are known, of several the one in a block', async () => {
    const { json } = await request();
    const { id } = json.payout;
    await api.sql(
      `insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ('batch_x', 'BTC', 'signed', 1000, now());`,
    );
    await api.sql(`update payouts set batch_id = 'batch_x', batch_position = 0, step = 'batched' where id = $1`, [id]);
    await attempt(1, 'aa');
    await attempt(2, 'bb');
    expect(await check(id)).toMatchObject({ txid: 'bb', fee: null, status: 'processing' });
    await api.sql(
      `update outgoing_batches set mined_attempt = (select id from outgoing_attempts where txid = 'aa') where id = 'batch_x'`,
    );
    await api.sql(`update payouts set status = 'completed', step = 'ended', fee = 423, completed_at = now() where id = $1`, [id]);
    expect(await check(id)).toMatchObject({
      txid: 'aa',
      fee: '0.00000423',
      status: 'completed',
      completed_at: expect.stringMatching(TIME),
    });
    expect(refused(await api.call('/cancel_payout', { payout_id: id }))).toEqual([409, 'payout_not_cancellable', 'payout_id']);
  });
  async function attempt(number: number, txid: string): Promise<void> {
    await api.sql(
      `insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, signed_at, sequence)
         values ('batch_x', $1::integer, 'BTC', $2, '\\x00', 500, 140, 0, now(), $1::bigint)`,
      [number, txid],
    );
  }
});

describe('a key', () => {
  test('makes one payout, for ever; another body is a conflict', async () => {
    const key = { 'idempotency-key': 'payout 1' };
    const before = await balance();
    const first = await request({}, key);
    const again = await request({}, key);
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    api.advance(40 * 86_400);
    api.tokens.clear();
    await api.reopen();
    expect((await request({}, key)).text).toBe(first.text);
    expect(refused(await request({ amount: '0.02' }, key))).toEqual([409, 'idempotency_conflict', 'idempotency_key']);
    expect(refused(await request({ destination: OTHER }, key))[1]).toBe('idempotency_conflict');
    expect(Number(before) - Number(await balance())).toBeCloseTo(0.01 + Number(FEE_MAX) / 1e8, 8);
  });

  test('that came twice at the same moment makes one payout', async () => {
    const [{ n: before }] = (await api.sql('select count(*)::int as n from payouts')) as [{ n: number }];
    const replies = await Promise.all(Array.from({ length: 8 }, () => request({}, { 'idempotency-key': 'at once' })));
    expect(replies.map(({ status }) => status).filter((status) => status !== 200 && status !== 409)).toEqual([]);
    const [{ n: after }] = (await api.sql('select count(*)::int as n from payouts')) as [{ n: number }];
    expect(after - before).toBe(1);
  });

  test('of a refused request is free again', async () => {
    const key = { 'idempotency-key': 'payout 2' };
    expect(refused(await request({ amount: '1000' }, key))).toEqual([422, 'insufficient_balance', 'amount']);
    expect((await request({}, key)).status).toBe(200);
  });
});

describe('refusals', () => {
  test('leave no payout, no entry and no key', async () => {
    const own = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json.wallet_address;
    const foreign = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' }, {}, 'other')).json
      .wallet_address;
    await api.call('/get_account_info', {}, {}, 'other');
    const before = await api.rowCounts();
    const cases: [unknown[], object, string?][] = [
      [[422, 'payout_below_minimum', 'amount'], { amount: '0.00099999' }],
      [[422, 'payout_below_minimum', 'amount'], { amount: '0' }],
      [[422, 'insufficient_balance', 'amount'], { amount: '1000' }],
      [[422, 'insufficient_balance', 'amount'], { amount: 'all' }, 'other'],
      [[400, 'invalid_amount', 'amount'], { amount: '0.010000000' }],
      [[400, 'invalid_amount', 'amount'], { amount: 0.01 }],
      [[400, 'invalid_destination', 'destination'], { destination: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' }],
      [[400, 'invalid_destination', 'destination'], { destination: 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx' }],
      [[400, 'invalid_destination', 'destination'], { destination: `${OUTSIDE.slice(0, -1)}q` }],
      [[400, 'invalid_destination', 'destination'], { destination: own }],
      [[400, 'invalid_destination', 'destination'], { destination: foreign }],
      [[400, 'invalid_destination', 'destination'], { destination: 'rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kyr2ufm' }],
      [[404, 'payout_not_found', 'payout_id'], { path: '/check_payout', payout_id: 'payout_0351dYxk0d1Jt8vTgkN1AM' }],
      [[404, 'payout_not_found', 'payout_id'], { path: '/cancel_payout', payout_id: 'nothing of ours' }],
      [[404, 'payout_not_found', 'starting_after'], { path: '/list_payouts', starting_after: 'payout_' }],
    ];
    for (const [expected, { path = '/request_payout', ...body }, username] of cases as [
      unknown[],
      { path?: string },
      string?,
    ][]) {
      const whole = path === '/request_payout' ? { method: 'bitcoin', amount: '0.01', destination: OUTSIDE, ...body } : body;
      const reply = await api.call(path, whole, path === '/list_payouts' ? {} : { 'idempotency-key': 'refused' }, username);
      expect([...refused(reply), JSON.stringify(body)]).toEqual([...expected, JSON.stringify(body)]);
    }
    expect(await api.rowCounts()).toEqual(before);
  });

  test("another merchant's payout is the same 404 as none", async () => {
    const { json } = await request();
    const texts = new Set<string>();
    for (const payout_id of [json.payout.id, 'payout_0351dYxk0d1Jt8vTgkN1AM', 'payout_', 'x']) {
      for (const path of ['/check_payout', '/cancel_payout']) {
        const reply = await api.call(path, { payout_id }, {}, 'other');
        expect(reply.status).toBe(404);
        texts.add(reply.text);
      }
    }
    expect(texts.size).toBe(1);
    expect((await api.call('/list_payouts', {}, {}, 'other')).json).toEqual({ success: true, data: [], has_more: false });
  });

  test('who may only read or take payments cannot pay out', async () => {
    for (const user of ['only.read', 'only.payments']) {
      for (const path of ['/request_payout', '/cancel_payout', '/set_payout_settings'])
        expect(refused(await api.call(path, {}, {}, user)).slice(0, 2)).toEqual([403, 'insufficient_permissions']);
    }
    expect((await api.call('/list_payouts', {}, {}, 'only.read')).status).toBe(200);
    expect((await request({}, {}, 'only.payouts')).status).toBe(200);
  });
});

describe('cancel', () => {
  test('answers the payout as failed and cancelled, twice the same', async () => {
    const before = await balance();
    const id = await waiting();
    expect(await check(id)).toMatchObject({ status: 'pending', held_reason: 'receivable' });
    const first = await api.call('/cancel_payout', { payout_id: id });
    expect(first.json).toMatchObject({
      success: true,
      payout: { id, status: 'failed', error: 'cancelled', held_reason: null, fee: null, completed_at: null },
    });
    expect((await api.call('/cancel_payout', { payout_id: id })).text).toBe(first.text);
    expect(await balance()).toBe(before);
  });

  test('of one that is processing is refused, and the answer is stored', async () => {
    const { id } = (await request()).json.payout;
    const key = { 'idempotency-key': 'cancel 1' };
    const first = await api.call('/cancel_payout', { payout_id: id }, key);
    expect(refused(first)).toEqual([409, 'payout_not_cancellable', 'payout_id']);
    expect(first.json.message).toContain('processing');
    expect((await api.call('/cancel_payout', { payout_id: id }, key)).headers.get('idempotent-replayed')).toBe('true');
  });

  test('and what it gave back are entries of the balance that name the payout', async () => {
    const id = await waiting();
    await api.call('/cancel_payout', { payout_id: id });
    const { data } = (await api.call('/list_balance_entries', { currency: 'BTC', limit: 2 })).json;
    expect(
      data.map((entry: { kind: string; payout_id: string; amount: string }) => [entry.kind, entry.payout_id, entry.amount]),
    ).toEqual([
      ['payout_released', id, '0.01004000'],
      ['payout_hold', id, '-0.01004000'],
    ]);
  });
});

describe('lists', () => {
  test('are newest first, page by page, and filtered by status, method and time', async () => {
    const all: { id: string; status: string; created_at: string }[] = [];
    for (let after: string | undefined; ; after = all.at(-1)?.id) {
      const { json } = await api.call('/list_payouts', { limit: 7, ...(after === undefined ? {} : { starting_after: after }) });
      all.push(...json.data);
      if (!json.has_more) break;
    }
    const stored = await api.sql('select id, status from payouts where merchant_id = $1 order by created_at desc, id desc', [
      merchantId,
    ]);
    expect(all.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
    for (const status of ['pending', 'processing', 'completed', 'failed']) {
      const want = stored.filter((one) => one.status === status).map(({ id }) => id);
      for (const more of [{}, { method: 'bitcoin' }]) {
        const { json } = await api.call('/list_payouts', { status, limit: 100, ...more });
        expect(json.data.map(({ id }: { id: string }) => id)).toEqual(want);
      }
    }
    const byMethod = await api.call('/list_payouts', { method: 'bitcoin', limit: 100 });
    expect(byMethod.json.data.map(({ id }: { id: string }) => id)).toEqual(stored.map(({ id }) => id));
    expect((await api.call('/list_payouts', { method: 'usdt' })).json.data).toEqual([]);
    const middle = all[Math.floor(all.length / 2)]?.created_at as string;
    const since = (await api.call('/list_payouts', { created_gte: middle, limit: 100 })).json.data.length;
    const until = (await api.call('/list_payouts', { created_lt: middle, status: 'processing', limit: 100 })).json.data;
    expect(since).toBe(all.filter((one) => one.created_at >= middle).length);
    expect(until).toHaveLength(all.filter((one) => one.created_at < middle && one.status === 'processing').length);
  });

  test('answer what the documents say', async () => {
    const components: Components = new Map();
    const replies: [keyof typeof MERCHANT_API, Reply][] = [
      ['requestPayout', await request()],
      ['listPayouts', await api.call('/list_payouts', {})],
      ['checkPayout', await api.call('/check_payout', { payout_id: await waiting() })],
      ['getPayoutSettings', await api.call('/get_payout_settings', {})],
    ];
    for (const [name, { json }] of replies)
      fits(json, documentSchema(MERCHANT_API[name].reply, components), Object.fromEntries(components) as never, name);
  });
});

describe('settings of automatic payouts', () => {
  const get = async () => (await api.call('/get_payout_settings', {})).json;
  const set = (body: object) => api.call('/set_payout_settings', body);
  const whole = { method: 'bitcoin', destination: OUTSIDE, threshold: '0.5', leave: '0.1' };

  test('are off until they are set', async () => {
    expect(await get()).toEqual({
      success: true,
      settings: {
        enabled: false,
        method: null,
        destination: null,
        threshold: null,
        leave: null,
        source_currency: null,
        paused: false,
        paused_reason: null,
        destination_usable_at: null,
      },
    });
  });

  test('refuse what could never be paid, and change nothing', async () => {
    const cases: [unknown[], object][] = [
      [[400, 'missing_field', 'method'], {}],
      [[400, 'missing_field', 'destination'], { method: 'bitcoin', threshold: '0.5' }],
      [[400, 'missing_field', 'threshold'], { method: 'bitcoin', destination: OUTSIDE }],
      [[400, 'missing_field', 'method'], { enabled: false, threshold: '0.5' }],
      [[422, 'payout_below_minimum', 'threshold'], { ...whole, threshold: '0.00099999' }],
      [[400, 'invalid_amount', 'threshold'], { ...whole, threshold: '0.500000000' }],
      [[400, 'invalid_amount', 'leave'], { ...whole, leave: '-1' }],
      [[400, 'invalid_amount', 'leave'], { ...whole, leave: '0.000000001' }],
      [[400, 'invalid_method', 'method'], { ...whole, method: 'cash' }],
      [[400, 'invalid_request', 'enabled'], { ...whole, enabled: 'yes' }],
      [[400, 'invalid_destination', 'destination'], { ...whole, destination: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' }],
      [[503, 'lightning_unavailable', undefined], { ...whole, method: 'lightning', destination: 'shop@example.com' }],
      [
        [503, 'currency_unavailable', undefined],
        { ...whole, method: 'ach', threshold: '100', destination: 'ach:091000019:12345' },
      ],
      [[422, 'payout_below_minimum', 'threshold'], { ...whole, threshold: '0' }],
    ];
    for (const [expected, body] of cases) expect([...refused(await set(body)), body]).toEqual([...expected, body]);
    expect((await get()).settings.method).toBeNull();
  });

  test('are taken as a whole, kept where not sent, and a new destination waits a day', async () => {
    const { json } = await set(whole);
    expect(json.settings).toEqual({
      enabled: true,
      method: 'bitcoin',
      destination: OUTSIDE,
      threshold: '0.50000000',
      leave: '0.10000000',
      source_currency: null,
      paused: false,
      paused_reason: null,
      destination_usable_at: new Date(api.now() + 86_400_000).toISOString(),
    });
    api.advance(60);
    const { json: same } = await set({ ...json.settings, threshold: '0.001' });
    expect(same.settings).toEqual({ ...json.settings, threshold: '0.00100000' });
    const { json: moved } = await set({ destination: OTHER });
    expect(moved.settings.destination_usable_at).toBe(new Date(api.now() + 86_400_000).toISOString());
    const { json: off } = await set({ enabled: false, paused: true });
    expect(off.settings).toMatchObject({
      enabled: false,
      paused: true,
      paused_reason: 'paused by the merchant',
      threshold: '0.00100000',
    });
    expect((await set({ paused: false })).json.settings).toMatchObject({ paused: false, paused_reason: null });
    expect((await get()).settings).toMatchObject({ destination: OTHER, enabled: false });
  });

  test('hold to the allow-list', async () => {
    await api.call('/set_settings', { payout_allow_list: [OTHER] });
    expect(refused(await set({ ...whole, enabled: true }))).toEqual([403, 'destination_not_allowed', 'destination']);
    expect((await set({ ...whole, destination: OTHER, enabled: true })).status).toBe(200);
    expect(refused(await request())).toEqual([403, 'destination_not_allowed', 'destination']);
    expect((await request({ destination: OTHER })).status).toBe(200);
    await api.call('/set_settings', { payout_allow_list: [] });
  });
});
