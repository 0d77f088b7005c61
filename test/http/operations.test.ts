// The operations over real HTTP on a real database: exactly the fields of the contract, for every operation that exists.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, BTC_RATE, makeApi, PASSWORD } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function newTransaction(more: object = {}): Promise<string> {
  const made = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', ...more });
  expect(made.json).toMatchObject({ status: 'started' });
  return made.json.transaction_id;
}

describe('sign-in', () => {
  test('/auth answers a token pair and nothing else, and forbids caching', async () => {
    const { status, json, headers } = await api.send('/auth', { username: 'SHOP', password: PASSWORD });
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual(['access_token', 'token_type', 'refresh_token']);
    expect(json.token_type).toBe('bearer');
    expect(headers.get('cache-control')).toBe('no-store');
  });
  test('/auth_refresh answers a new pair; the access token may stand in the header', async () => {
    const first = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
    const second = await api.send('/auth_refresh', { access_token: first.access_token, refresh_token: first.refresh_token });
    expect(second.status).toBe(200);
    expect(Object.keys(second.json)).toEqual(['access_token', 'token_type', 'refresh_token']);
    const third = await api.send(
      '/auth_refresh',
      { refresh_token: second.json.refresh_token },
      { authorization: `Bearer ${second.json.access_token}` },
    );
    expect(third.status).toBe(200);
  });
  test('/sign_out revokes the tokens of its sign-in', async () => {
    const { access_token } = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
    expect((await api.send('/sign_out', { access_token })).json).toEqual({ success: true });
    expect((await api.send('/get_account_info', { access_token })).json.error).toBe('invalid_token');
  });
});

describe('create, check, cancel', () => {
  test('create answers exactly eight fields', async () => {
    const { status, json } = await api.call('/create_transaction', {
      amount: '25',
      crypto_selected: 'btc',
      email: 'jane@example.com',
      label: 'order 1',
    });
    expect(status).toBe(200);
    expect(Object.keys(json).sort()).toEqual(
      [
        'crypto_amount',
        'exchange_rate',
        'expires_at',
        'qr_code',
        'status',
        'transaction_id',
        'usd_amount',
        'wallet_address',
      ].sort(),
    );
    expect(json).toMatchObject({ usd_amount: '25.00', exchange_rate: BTC_RATE, crypto_amount: '0.00038462', status: 'started' });
    expect(json.transaction_id).toMatch(/^txn_[0-9A-Za-z]+$/);
    expect(json.wallet_address).toMatch(/^bcrt1q/);
    expect(json.expires_at).toMatch(TIME);
    expect(Date.parse(json.expires_at) - api.now()).toBe(900_000);
  });
  test('check answers exactly eight fields; nothing received is zero with all decimals', async () => {
    const id = await newTransaction();
    const { json } = await api.call('/check_transaction', { transaction_id: id });
    expect(json).toEqual({
      transaction_id: id,
      status: 'started',
      crypto_amount: '0.00038462',
      crypto_received: '0.00000000',
      confirmations: 0,
      usd_amount: '25.00',
      created_at: expect.stringMatching(TIME),
      confirmed_at: null,
    });
  });
  test('cancel answers three fields, twice the same', async () => {
    const id = await newTransaction();
    const first = await api.call('/cancel_transaction', { transaction_id: id });
    expect(first.json).toEqual({ transaction_id: id, status: 'cancelled', message: expect.any(String) });
    expect((await api.call('/cancel_transaction', { transaction_id: id })).text).toBe(first.text);
  });
  test('/v1 and Authorization: Bearer do the same', async () => {
    const id = await newTransaction();
    const { json } = await api.send(
      '/v1/check_transaction',
      { transaction_id: id },
      { authorization: `bearer ${await api.tokenOf('shop')}` },
    );
    expect(json.transaction_id).toBe(id);
  });
  test('expand adds one field of each name, and nothing else', async () => {
    const made = await api.call('/create_transaction', {
      amount: '5',
      crypto_selected: 'LTC',
      expand: ['rate', 'refund', 'payments', 'events', 'checkout'],
    });
    expect(made.json.rate).toEqual({
      usd: '80.00',
      at: expect.stringMatching(TIME),
      sources: [expect.objectContaining({ source: 'kraken' })],
    });
    expect(made.json.checkout).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/pay\/[0-9A-Za-z]{22}$/) });
    expect(made.json.refund).toBeNull();
    expect(made.json.payments).toEqual([]);
    expect(made.json.events).toEqual([{ status: 'started', at: expect.stringMatching(TIME), reason: 'created' }]);
    const id = made.json.transaction_id;
    const checked = await api.call('/check_transaction', { transaction_id: id, expand: ['events'] });
    expect(Object.keys(checked.json)).toHaveLength(9);
    const cancelled = await api.call('/cancel_transaction', { transaction_id: id, expand: ['events'] });
    expect(cancelled.json.events.map((event: { status: string }) => event.status)).toEqual(['started', 'cancelled']);
  });
});

describe('waiting', () => {
  test('answers at once when the status is another one already', async () => {
    const id = await newTransaction();
    const started = performance.now();
    const { json } = await api.call('/check_transaction', { transaction_id: id, wait_seconds: 30, status_was: 'pending' });
    expect(json.status).toBe('started');
    expect(performance.now() - started).toBeLessThan(2000);
  });
  test('answers when the status changes', async () => {
    const id = await newTransaction();
    // whichever of the two calls arrives first
    const waiting = api.call('/check_transaction', { transaction_id: id, wait_seconds: 30, status_was: 'started' });
    await api.call('/check_transaction', { transaction_id: id });
    await api.call('/cancel_transaction', { transaction_id: id });
    expect((await waiting).json.status).toBe('cancelled');
  });
  test('answers when the time is up', async () => {
    const id = await newTransaction();
    const started = performance.now();
    const { json } = await api.call('/check_transaction', { transaction_id: id, wait_seconds: 1 });
    expect(json.status).toBe('started');
    expect(performance.now() - started).toBeGreaterThan(900);
  });
});

describe('account, settings, lists', () => {
  test('/get_account_info answers success, the account and all seven balances in order', async () => {
    const { json, text } = await api.call('/get_account_info', {});
    expect(json).toEqual({
      success: true,
      account: {
        affiliate_id: api.affiliateId,
        email: 'shop@example.com',
        business_name: 'The Shop',
        created_at: expect.stringMatching(TIME),
      },
      balances: {
        BTC: '0.00000000',
        LTC: '0.00000000',
        ETH: '0.00000000',
        BCH: '0.00000000',
        DASH: '0.00000000',
        DOGE: '0.00000000',
        USDT: '0.000000',
      },
    });
    expect([...text.matchAll(/"([A-Z]{3,4})"/g)].map((found) => found[1])).toEqual([
      'BTC',
      'LTC',
      'ETH',
      'BCH',
      'DASH',
      'DOGE',
      'USDT',
    ]);
  });
  test('settings: what is not sent stays, null removes the approval limit', async () => {
    const before = await api.call('/get_settings', {});
    expect(before.json).toEqual({
      success: true,
      settings: { tolerance_percent: '1.00', late_payments: 'accept', payout_allow_list: [], payout_approval_above: null },
    });
    const set = await api.call('/set_settings', {
      tolerance_percent: '2.5',
      payout_approval_above: '100',
      payout_allow_list: ['a@b.co', 'c@d.co', 'a@b.co'],
    });
    expect(set.json.settings).toEqual({
      tolerance_percent: '2.50',
      late_payments: 'accept',
      payout_allow_list: ['a@b.co', 'c@d.co'],
      payout_approval_above: '100.00',
    });
    const removed = await api.call('/set_settings', { payout_approval_above: null });
    expect(removed.json.settings.payout_approval_above).toBeNull();
    expect(removed.json.settings.payout_approval_above_from).toMatch(TIME);
  });
  test('/list_transactions pages newest first, filters, and shows every field', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      api.advance(1);
      ids.unshift(await newTransaction({ label: 'page', crypto_selected: n % 2 ? 'LTC' : 'BTC' }));
    }
    const first = await api.call('/list_transactions', { label: 'page', limit: 3 });
    expect(first.json.data.map((item: { transaction_id: string }) => item.transaction_id)).toEqual(ids.slice(0, 3));
    expect(first.json.has_more).toBe(true);
    expect(Object.keys(first.json.data[0]).sort()).toEqual(
      `transaction_id wallet_address qr_code crypto_amount crypto_received usd_amount exchange_rate expires_at confirmations created_at
       confirmed_at status message crypto_selected label`
        .split(/\s+/)
        .sort(),
    );
    const second = await api.call('/list_transactions', { label: 'page', limit: 3, starting_after: ids[2] });
    expect(second.json.data.map((item: { transaction_id: string }) => item.transaction_id)).toEqual(ids.slice(3));
    expect(second.json.has_more).toBe(false);
    const ltc = await api.call('/list_transactions', { label: 'page', crypto_selected: 'ltc' });
    expect(ltc.json.data.map((item: { crypto_selected: string }) => item.crypto_selected)).toEqual(['LTC', 'LTC']);
    const since = await api.call('/list_transactions', { label: 'page', created_gte: first.json.data[1].created_at });
    expect(since.json.data).toHaveLength(2);
    const until = await api.call('/list_transactions', { label: 'page', created_lt: first.json.data[1].created_at });
    expect(until.json.data).toHaveLength(3);
    expect((await api.call('/list_transactions', { label: 'page', status: 'review' })).json.data).toEqual([]);
    expect((await api.call('/list_transactions', { crypto_selected: 'LN' })).json).toEqual({
      success: true,
      data: [],
      has_more: false,
    });
    expect((await api.call('/list_transactions', {}, {}, 'other')).json.data).toEqual([]);
  });
  test('/list_balance_entries and /get_rates', async () => {
    expect((await api.call('/list_balance_entries', { currency: 'BTC' })).json).toEqual({
      success: true,
      data: [],
      has_more: false,
    });
    expect(await api.call('/list_balance_entries', { starting_after: '1042' })).toMatchObject({
      status: 404,
      json: { error: 'not_found', param: 'starting_after' },
    });
    const { json } = await api.call('/get_rates', {});
    expect(json.success).toBe(true);
    expect(Object.keys(json.rates)).toEqual(['BTC', 'LTC']);
    expect(json.rates.BTC).toMatchObject({ usd: BTC_RATE, at: expect.stringMatching(TIME) });
  });
  test('/resolve_transaction declines what is in review', async () => {
    const id = await newTransaction();
    await api.sql(`update transactions set status = 'review', review_cause = 'late' where id = $1`, [id]);
    const { json } = await api.call('/resolve_transaction', { transaction_id: id, action: 'decline' });
    expect(json).toEqual({ success: true, transaction: { transaction_id: id, status: 'declined' } });
  });
});

describe('what one merchant may hold', () => {
  test('while its lists hang, another merchant’s checks and lists are answered', async () => {
    const made = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, 'other');
    await api.tokenOf('shop');
    await api.sql('begin');
    await api.sql('lock table ledger.entry in access exclusive mode');
    const hanging = Array.from({ length: 40 }, () => api.call('/list_balance_entries', {}));
    try {
      for (let n = 0; n < 5; n++) {
        const check = await api.call('/check_transaction', { transaction_id: made.json.transaction_id }, {}, 'other');
        expect(check.json.status).toBe('started');
        const list = await api.call('/list_transactions', { label: 'nowhere' }, {}, 'other');
        expect(list.json).toEqual({ success: true, data: [], has_more: false });
      }
      const [{ held }] = (await api.sql(
        `select count(*)::int as held from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )) as [{ held: number }];
      expect(held).toBe(2);
    } finally {
      await api.sql('rollback');
    }
    for (const { status } of await Promise.all(hanging)) expect(status).toBe(200);
  });
});
