// Lists of payouts and the settings of automatic ones, over real HTTP on a real database.
import { describe, expect, test } from 'vitest';
import { MERCHANT_API } from '../../src/contract/merchant-api.ts';
import { type Components, documentSchema } from '../../src/contract/shapes.ts';
import { OUTSIDE } from '../support/funded.ts';
import { fits } from '../support/schema-check.ts';
import type { Reply } from './api-server.ts';
import { api, check, merchantId, OTHER, payoutCallsForAll, refused, request, waiting } from './payout-calls.ts';

payoutCallsForAll();

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

describe('the events of a payout', () => {
  test('show it as check_payout did, from its request to its end', async () => {
    const id = await waiting();
    const before = await check(id);
    await api.call('/cancel_payout', { payout_id: id });
    const { json } = await api.call('/list_events', { object: id });
    expect(json.data.map(({ type, sequence, data }: never) => [type, sequence, (data as { previous: object }).previous])).toEqual(
      [
        ['payout.failed', 2, { status: 'pending' }],
        ['payout.pending', 1, { status: null }],
      ],
    );
    expect(json.data.map(({ data }: { data: { object: object } }) => data.object)).toEqual([await check(id), before]);
    const of = async (object: string) => (await api.call('/list_events', { object, limit: 100 })).json.data;
    expect((await of('payout')).length).toBeGreaterThan((await of('transaction')).length);
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
        [422, 'payout_below_minimum', 'threshold'],
        { ...whole, method: 'ach', threshold: '99.99', destination: 'ach:091000019:12345' },
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

  test('of another unit are sent anew: half a bitcoin is not half a dollar', async () => {
    expect((await set({ ...whole, destination: OTHER, enabled: true })).status).toBe(200);
    const before = await get();
    const bank = { method: 'ach', destination: 'ach:021000021:12345678' };
    const missing = await set({ ...bank, threshold: '100' });
    expect([...refused(missing), missing.json.message]).toEqual([
      400,
      'missing_field',
      'leave',
      'leave is required: it was 0.1 BTC, and the unit is USD now.',
    ]);
    expect(refused(await set({ ...bank, leave: '5' }))).toEqual([400, 'missing_field', 'threshold']);
    expect(await get()).toEqual(before);
    expect((await set({ leave: '0.00' })).status).toBe(200);
    // nothing is nothing in every unit
    const { json } = await set({ ...bank, threshold: '100' });
    expect(json.settings).toMatchObject({ method: 'ach', threshold: '100.00', leave: '0.00' });
    expect((await set({ ...whole, enabled: false })).status).toBe(200);
  });

  test('hold to the allow-list', async () => {
    await api.call('/set_settings', { payout_allow_list: [OTHER] });
    expect(refused(await set({ ...whole, enabled: true }))).toEqual([403, 'destination_not_allowed', 'destination']);
    expect((await set({ ...whole, destination: OTHER, enabled: true })).status).toBe(200);
    expect(refused(await request())).toEqual([403, 'destination_not_allowed', 'destination']);
    // it comes before the minimum, by whatever method
    const bank = { method: 'ach', destination: 'ach:021000021:12345678', amount: '99.99' };
    expect(refused(await request(bank))).toEqual([403, 'destination_not_allowed', 'destination']);
    expect((await request({ destination: OTHER })).status).toBe(200);
    // the same address in the capitals of a QR code
    expect((await request({ destination: OTHER.toUpperCase() })).status).toBe(200);
    await api.call('/set_settings', { payout_allow_list: [] });
  });
});
