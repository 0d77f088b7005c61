// Every operation × every refusal that its document names, over real HTTP: each is provoked, none is undocumented, none leaves a row behind.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusalsOf } from '../../src/contract/endpoint.ts';
import { MERCHANT_API, type MerchantApi } from '../../src/contract/merchant-api.ts';
import { REFUSALS } from '../../src/core/refusal.ts';
import { createAuthenticator, signIn } from '../../src/flow/sign-in.ts';
import { NO_NEIGHBOURS } from '../../src/http/neighbours.ts';
import { createServer } from '../../src/http/server.ts';
import { connect } from '../../src/store/connect.ts';
import { freePort } from '../support/core-daemon.ts';
import { type ApiWorld, makeApi, PASSWORD, type Reply } from './api-world.ts';

type Name = keyof MerchantApi;
const NAMES = Object.keys(MERCHANT_API) as Name[];
const KEYED = NAMES.filter((name) => MERCHANT_API[name].keyKept !== null);
const WITH_TOKEN = NAMES.filter((name) => MERCHANT_API[name].access.kind === 'token');

let api: ApiWorld;
/** The codes that each operation has answered with in this file. */
const seen = new Map<Name, Set<string>>(NAMES.map((name) => [name, new Set()]));
let rowsBefore: Record<string, number>;
let transactionId: string;
/** One that waits for a decision. */
let reviewId: string;
let foreignId: string;

/** A body that is accepted, without its token. */
function good(name: Name): Record<string, unknown> {
  const bodies: Partial<Record<Name, Record<string, unknown>>> = {
    auth: { username: 'shop', password: PASSWORD },
    createTransaction: { amount: '25.00', crypto_selected: 'BTC' },
    checkTransaction: { transaction_id: transactionId },
    cancelTransaction: { transaction_id: transactionId },
    requestPayout: { method: 'bitcoin', amount: '0.01', destination: 'bcrt1qcr8te4kr609gcawutmrza0j4xv80jy8zeqchgx' },
    resolveTransaction: { transaction_id: transactionId, action: 'accept' },
    setSettings: { late_payments: 'accept' },
    refresh: { access_token: 'x', refresh_token: 'y' },
  };
  return bodies[name] ?? {};
}

function note(name: Name, reply: Reply): Reply {
  const code = reply.json?.error;
  expect(code, reply.text).toBeTypeOf('string');
  expect(refusalsOf(MERCHANT_API[name]), `${name} answered ${code}`).toContain(code);
  expect(reply.status).toBe(REFUSALS[code as keyof typeof REFUSALS][0]);
  expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(reply.headers.get('x-request-id')).toMatch(/^req_/);
  expect(Object.keys(reply.json).filter((field) => !['error', 'message', 'param'].includes(field))).toEqual([]);
  seen.get(name)?.add(code);
  return reply;
}

async function refused(
  name: Name,
  code: string,
  body: Record<string, unknown> | string | Buffer,
  headers = {},
  to = api,
): Promise<Reply> {
  const { path, access } = MERCHANT_API[name];
  const isBody = typeof body === 'object' && !Buffer.isBuffer(body);
  const reply = isBody && access.kind === 'token' ? await to.call(path, body, headers) : await to.send(path, body, headers);
  note(name, reply);
  expect(reply.json.error, `${name} ${JSON.stringify(body)} ${reply.text}`).toBe(code);
  return reply;
}

beforeAll(async () => {
  api = await makeApi();
  transactionId = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json.transaction_id;
  reviewId = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json.transaction_id;
  await api.sql(`update transactions set status = 'review', why = 'late' where id = $1`, [reviewId]);
  foreignId = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' }, {}, 'other')).json.transaction_id;
  for (const scope of ['read', 'payments', 'payouts']) await api.tokenOf(`only.${scope}`);
  rowsBefore = await api.rowCounts();
});
afterAll(() => api.end());

describe('the body', () => {
  const bad: [string, string | Buffer, string][] = [
    ['nothing', '', 'invalid_json'],
    ['no JSON', 'amount=25', 'invalid_json'],
    ['half of it', '{"amount":', 'invalid_json'],
    ['NaN', '{"amount": NaN}', 'invalid_json'],
    ['a list', '[]', 'invalid_json'],
    ['a string', '"x"', 'invalid_json'],
    ['null', 'null', 'invalid_json'],
    ['a byte order mark', '\ufeff{}', 'invalid_json'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]), 'invalid_json'],
    ['an overlong NUL', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc0, 0x80, 0x22, 0x7d]), 'invalid_json'],
    ['six levels', '{"a":[[[[[]]]]]}', 'invalid_json'],
    ['a depth bomb', `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, 'invalid_json'],
    ['__proto__', '{"__proto__":{"access_token":"x"}}', 'invalid_request'],
    ['constructor below', '{"a":{"constructor":1}}', 'invalid_request'],
    ['prototype in a list', '{"a":[{"prototype":1}]}', 'invalid_request'],
    ['one byte too much', `{"a":"${'x'.repeat(65_536 - 7)}"}`, 'payload_too_large'],
    ['1 MB', `{"a":"${'x'.repeat(1_000_000)}"}`, 'payload_too_large'],
  ];
  test.each(NAMES)('%s refuses what is no good JSON object', async (name) => {
    for (const [, body, code] of bad) await refused(name, code, body);
  });
  test.each(NAMES)('%s takes JSON only, uncompressed, by POST', async (name) => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'application/json; charset=latin1',
      '',
    ]) {
      await refused(name, 'unsupported_media_type', '{}', { 'content-type': type });
    }
    await refused(name, 'unsupported_media_type', '{}', { 'content-encoding': 'gzip' });
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const prefix of ['', '/v1']) {
        const reply = await api.send(prefix + MERCHANT_API[name].path, undefined, {}, method);
        expect(note(name, reply).json.error).toBe('method_not_allowed');
        expect(reply.headers.get('allow')).toBe('POST');
      }
    }
  });
  test('what is accepted: five levels, 65,536 bytes, a media type with its charset, the last of two keys', async () => {
    const token = await api.tokenOf('shop');
    const start = `{"access_token":"${token}","x":"`;
    const full = `${start}${'x'.repeat(65_536 - start.length - 2)}"}`;
    expect((await api.send('/get_rates', full)).status).toBe(200);
    const json = JSON.stringify({ access_token: token, a: [[[[]]]] });
    for (const type of [
      'application/json; charset=utf-8',
      'APPLICATION/JSON;charset="UTF-8"',
      'application/json;',
      'application/json; v=1',
    ]) {
      expect((await api.send('/get_rates', json, { 'content-type': type })).status).toBe(200);
    }
    expect((await api.send('/get_rates', `{"access_token":5,"access_token":"${token}"}`)).status).toBe(200);
  });
});

describe('the token', () => {
  test.each(WITH_TOKEN)('%s wants one', async (name) => {
    const { path } = MERCHANT_API[name];
    const token = await api.tokenOf('shop');
    const claims = token.split('.')[1] as string;
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    const [missing, ...wrong] = [
      null,
      5,
      true,
      {},
      [token],
      '',
      'x',
      `${token}x`,
      `${none}.${claims}.`,
      'a.b.c',
      'x'.repeat(5000),
    ];
    expect(note(name, await api.send(path, { ...good(name), access_token: missing })).json.error).toBe('missing_token');
    expect(note(name, await api.send(path, good(name), { authorization: 'Basic eDp5' })).json.error).toBe('missing_token');
    for (const access_token of wrong) {
      expect(note(name, await api.send(path, { ...good(name), access_token })).json.error).toBe('invalid_token');
    }
    for (const authorization of ['Bearer', 'Bearer x', 'bearer a.b.c', `Bearer ${token} x`]) {
      expect(note(name, await api.send(path, good(name), { authorization })).json.error).toBe('invalid_token');
    }
    await refused(name, 'conflicting_credentials', good(name), { authorization: 'Bearer x' });
    const { refresh_token } = (await api.send('/auth', good('auth'))).json;
    expect(note(name, await api.send(path, { ...good(name), access_token: refresh_token })).json.error).toBe('invalid_token');
    rowsBefore.sign_ins! += 1;
  });

  test.each(WITH_TOKEN.filter((name) => name !== 'signOut'))(
    '%s wants its scope, and looks at it before the fields',
    async (name) => {
      const needed: Partial<Record<Name, string>> = {
        createTransaction: 'payments',
        cancelTransaction: 'payments',
        resolveTransaction: 'payments',
        setSettings: 'payments',
        requestPayout: 'payouts',
      };
      const scope = needed[name] ?? 'read';
      for (const other of ['read', 'payments', 'payouts'].filter((one) => one !== scope)) {
        const reply = await api.call(MERCHANT_API[name].path, { transaction_id: 5 }, {}, `only.${other}`);
        expect(note(name, reply).json.error).toBe('insufficient_permissions');
      }
    },
  );
  test('the scope of two operations depends on what is asked', async () => {
    const reimburse = { transaction_id: reviewId, action: 'reimburse', destination: 'x' };
    expect((await api.call('/resolve_transaction', reimburse, {}, 'only.payments')).json.error).toBe('insufficient_permissions');
    expect((await api.call('/resolve_transaction', reimburse, {}, 'only.payouts')).json.error).toBe('currency_unavailable');
    for (const change of [{ payout_approval_above: null }, { payout_allow_list: [] }, { payout_approval_above: '5' }]) {
      expect((await api.call('/set_settings', change, {}, 'only.payments')).json.error).toBe('insufficient_permissions');
    }
    const both = { late_payments: 'accept', payout_approval_above: null };
    expect((await api.call('/set_settings', both, {}, 'only.payouts')).json.error).toBe('insufficient_permissions');
    expect((await api.call('/set_settings', { payout_allow_list: [] }, {}, 'only.payouts')).status).toBe(200);
    expect((await api.call('/set_settings', { payout_allow_list: null }, {}, 'only.payments')).status).toBe(200);
  });
});

describe('the fields', () => {
  const NUL = 'a\u0000b';
  const values: Record<string, [string, unknown[]]> = {
    amount: [
      'invalid_amount',
      [
        25,
        25.5,
        true,
        {},
        [],
        ['25'],
        '',
        ' ',
        ' 25',
        '25 ',
        '+25',
        '-25',
        '-0',
        '2e5',
        '1E2',
        'NaN',
        'Infinity',
        '1,000',
        '1_000',
        '.5',
        '5.',
      ].concat(['007', '00', '0x10', '1'.repeat(19), '10.000', '0.001', '２５', '25\n', NUL, '9'.repeat(10_000)] as never),
    ],
    crypto_selected: [
      'unsupported_currency',
      [5, {}, '', 'XYZ', 'BTC ', 'USD', '__proto__', 'constructor', 'toString', NUL, 'x'.repeat(1000)],
    ],
    email: [
      'invalid_email',
      [5, {}, '', 'x', 'a@b', '@b.co', 'a@', 'a b@c.de', 'a@b.co, c@d.ef', 'a@b..co', 'a..b@c.de', '.a@b.co', NUL].concat([
        'a@b.co\n',
        `${'a'.repeat(65)}@b.co`,
        `a@${'b'.repeat(250)}.co`,
        'a\ud800@b.co',
      ] as never),
    ],
    label: ['invalid_request', [5, {}, [], NUL, 'a\nb', '\u007f', '\u0085', 'x'.repeat(201), 'x'.repeat(10_000), '\ud800']],
    expand: ['invalid_request', ['events', {}, [1], ['nope'], ['events', 'checkout'], ['checkout'], [null], ['toString']]],
    transaction_id: ['invalid_request', [5, {}, [], true]],
    wait_seconds: ['invalid_request', [-1, 31, 1.5, '5', true, 1e9, {}]],
    status_was: ['invalid_request', ['done', 5, '', 'Started', []]],
    status: ['invalid_request', ['done', 5, '', []]],
    limit: ['invalid_request', [0, -1, 101, 1.5, '5', true]],
    starting_after: ['invalid_request', [5, {}, true]],
    created_gte: [
      'invalid_request',
      [5, '', 'yesterday', '2026-01-01', '2026-02-30T00:00:00Z', '2026-01-01T25:00:00Z', '2026-01-01T00:00:00'],
    ],
    created_lt: ['invalid_request', [{}, '2026-13-01T00:00:00Z', `2026-01-01T00:00:00Z${NUL}`]],
    username: ['invalid_request', [5, {}, NUL, 'x'.repeat(255), '\ud800']],
    password: ['invalid_request', [5, {}, [], 'x'.repeat(1025)]],
    access_token: ['invalid_token', [5, {}, '', 'x']],
    refresh_token: ['invalid_token', [5, {}, '', 'x', 'a.b.c']],
    method: ['invalid_method', [5, {}, '', 'paypal', 'Bitcoin', '__proto__']],
    destination: ['invalid_destination', [5, {}, '', ' ', 'a b', NUL, 'ä', 'x'.repeat(2049)]],
    source_currency: ['unsupported_currency', [5, '', 'XYZ', 'USD']],
    action: ['invalid_request', [5, {}, '', 'ACCEPT', 'refuse']],
    part: ['invalid_request', [5, '', 'all']],
    tolerance_percent: ['invalid_request', [1, {}, '', '-1', '5.01', '6', '1.000', '1e0', '01']],
    late_payments: ['invalid_request', [5, {}, '', 'ACCEPT']],
    payout_allow_list: ['invalid_request', [5, 'a', [5], [''], ['a b'], [NUL], Array(101).fill('a')]],
    payout_approval_above: ['invalid_amount', [5, {}, '', '-1', '1.000', 'all']],
    currency: ['unsupported_currency', [5, '', 'XYZ', 'USD']],
  };

  test.each(NAMES.filter((name) => Object.keys(MERCHANT_API[name].fields).length > 0))(
    '%s refuses each wrong value, naming the field',
    async (name) => {
      for (const [field, { required }] of Object.entries(MERCHANT_API[name].fields)) {
        const [code, bad] = values[field] as [string, unknown[]];
        if (required) {
          const { [field]: _left, ...without } = good(name);
          expect((await refused(name, 'missing_field', without)).json.param).toBe(field);
          expect((await refused(name, 'missing_field', { ...without, [field]: null })).json.param).toBe(field);
        }
        for (const value of bad) {
          if (name === 'refresh' && typeof value === 'string') continue;
          // bitcoin has 8 decimals
          if (name === 'requestPayout' && (value === '10.000' || value === '0.001')) continue;
          const reply = await refused(name, code, { ...good(name), [field]: value });
          if (code !== 'invalid_token') expect(reply.json.param).toBe(field);
          expect(reply.json.message).not.toContain('undefined');
        }
      }
    },
  );
  test('a missing field is told before a wrong one', async () => {
    expect((await refused('createTransaction', 'missing_field', { amount: 5 })).json.param).toBe('crypto_selected');
    expect((await refused('refresh', 'missing_field', { access_token: 5 })).json.param).toBe('refresh_token');
  });
  test('ids that do not exist, are foreign, or could never be ours are the same 404', async () => {
    const texts = new Set<string>();
    for (const name of ['checkTransaction', 'cancelTransaction', 'resolveTransaction'] as const) {
      for (const transaction_id of [
        foreignId,
        'txn_0000000000000000000000',
        'txn_',
        '',
        NUL,
        'x',
        'x'.repeat(9999),
        "' or 1=1",
      ]) {
        texts.add((await refused(name, 'transaction_not_found', { ...good(name), transaction_id })).text);
      }
    }
    expect(texts.size).toBe(1);
    await refused('listTransactions', 'transaction_not_found', { starting_after: foreignId });
  });
  test('a payout is checked for its form, then refused because there is no rail', async () => {
    const payout = (body: object) => ({ ...good('requestPayout'), ...body });
    const cases: [string, object][] = [
      ['invalid_amount', { method: 'bitcoin', amount: '0.000000001' }],
      ['invalid_amount', { method: 'ach', amount: '100.000' }],
      ['invalid_amount', { method: 'usdt', amount: '50.0000001' }],
      ['invalid_amount', { amount: 'ALL' }],
      ['payout_below_minimum', { method: 'bitcoin', amount: '0.00099999' }],
      ['payout_below_minimum', { method: 'ach', destination: 'ach:091000019:12345', amount: '99.99' }],
      [
        'payout_below_minimum',
        { method: 'usdt', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94', amount: '49.999999' },
      ],
      ['payout_below_minimum', { method: 'lightning', destination: 'shop@example.com', amount: '0' }],
      ['currency_unavailable', { method: 'bitcoin', amount: '0.001' }],
      ['invalid_destination', { method: 'bitcoin', amount: '0.001', destination: 'hello' }],
      ['invalid_destination', { method: 'ach', amount: '100', destination: 'ach:091000018:1' }],
      ['invalid_destination', { method: 'usdt', amount: '50', destination: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' }],
      ['invalid_destination', { method: 'lightning', amount: '0.1', destination: 'nobody' }],
      ['currency_unavailable', { method: 'ach', amount: '100', destination: 'ach:091000019:12345:savings' }],
      ['currency_unavailable', { method: 'usdt', amount: '50', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' }],
      ['currency_unavailable', { method: 'lightning', amount: '0.00000001', destination: 'shop@example.com' }],
      ['currency_unavailable', { amount: 'all' }],
    ];
    for (const [code, body] of cases) await refused('requestPayout', code, payout(body));
    const reply = await refused('requestPayout', 'currency_unavailable', payout({}));
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  });
  test('what may not be asked for', async () => {
    const create = (body: object) => ({ ...good('createTransaction'), ...body });
    for (const amount of ['0', '0.00', '0.49']) await refused('createTransaction', 'amount_below_minimum', create({ amount }));
    for (const amount of ['100000.01', '9'.repeat(18)])
      await refused('createTransaction', 'amount_above_maximum', create({ amount }));
    for (const crypto_selected of ['ETH', 'eth', 'USDT', 'usdt-erc20']) {
      await refused('createTransaction', 'currency_unavailable', create({ crypto_selected }));
    }
    for (const crypto_selected of ['BTC-LN', 'ln', 'Lightning', 'BTC_LN', 'btc-lightning']) {
      await refused('createTransaction', 'lightning_unavailable', create({ crypto_selected }));
    }
    await refused('resolveTransaction', 'not_resolvable', { transaction_id: transactionId, action: 'accept' });
    await refused('resolveTransaction', 'missing_field', { transaction_id: transactionId, action: 'reimburse' });
    await refused('resolveTransaction', 'not_resolvable', {
      transaction_id: transactionId,
      action: 'reimburse',
      destination: 'x',
    });
    await refused('resolveTransaction', 'currency_unavailable', {
      transaction_id: reviewId,
      action: 'reimburse',
      destination: 'x',
    });
    await refused('auth', 'invalid_credentials', { username: 'nobody', password: 'wrong' });
    await refused('auth', 'invalid_credentials', { username: 'shop', password: 'wrong\u0000' });
  });
});

describe('the idempotency key', () => {
  test.each(KEYED)('%s takes 1 to 255 printable characters, from one place', async (name) => {
    for (const idempotency_key of [5, {}, '', 'x'.repeat(256), 'a\u0000', 'a\nb', '\ud800']) {
      expect((await refused(name, 'invalid_request', { ...good(name), idempotency_key })).json.param).toBe('idempotency_key');
    }
    await refused(name, 'invalid_request', { ...good(name), idempotency_key: 'a' }, { 'idempotency-key': 'b' });
    await refused(name, 'invalid_request', good(name), { 'idempotency-key': '' });
  });
  test.each(KEYED)('%s refuses a key whose first request is still running', async (name) => {
    const [{ id }] = (await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId])) as [{ id: bigint }];
    const lock = `hashtextextended('${id} ${MERCHANT_API[name].path} held', 10)`;
    await api.sql(`select pg_advisory_lock(${lock})`);
    await refused(name, 'request_in_progress', good(name), { 'idempotency-key': 'held' });
    await api.sql(`select pg_advisory_unlock(${lock})`);
  });
});

describe('at the end', () => {
  test('nothing of all this has left a row behind', async () => {
    expect(await api.rowCounts()).toEqual(rowsBefore);
    expect(api.bugs).toEqual([]);
  });
  test('keys that were used with another body', async () => {
    const pairs: Partial<Record<Name, object>> = {
      createTransaction: { amount: '6' },
      cancelTransaction: { x: 1 },
      resolveTransaction: { x: 1 },
      setSettings: { x: 1 },
    };
    for (const [name, change] of Object.entries(pairs) as [Name, object][]) {
      const key = { 'idempotency-key': 'other body' };
      await api.call(MERCHANT_API[name].path, good(name), key);
      await refused(name, 'idempotency_conflict', { ...good(name), ...change }, key);
    }
    const { access_token } = (await api.send('/auth', good('auth'))).json;
    await api.send('/sign_out', { access_token }, { 'idempotency-key': 'other body' });
    await refused('signOut', 'idempotency_conflict', { x: 1 }, { 'idempotency-key': 'other body' });
  });
  test('states and times', async () => {
    await api.sql(`update transactions set status = 'succeeded' where id = $1`, [transactionId]);
    const reply = await refused('cancelTransaction', 'transaction_not_cancellable', { transaction_id: transactionId });
    expect(reply.json.message).toContain('succeeded');
    api.advance(301);
    await refused('createTransaction', 'rate_unavailable', good('createTransaction'));
    api.advance(600);
    for (const name of WITH_TOKEN) await refused(name, 'token_expired', good(name));
    const pair = (await api.send('/auth', good('auth'))).json;
    await refused('refresh', 'conflicting_credentials', pair, { authorization: 'Bearer x' });
    const next = (await api.send('/auth_refresh', pair)).json;
    expect((await api.send('/auth_refresh', next)).status).toBe(200);
    await refused('refresh', 'refresh_token_reused', pair);
    const old = (await api.send('/auth', good('auth'))).json;
    api.advance(1_296_000);
    await refused('refresh', 'refresh_token_expired', old);
    await refused('refresh', 'invalid_token', { ...old, refresh_token: old.access_token });
  });
  test('a suspended account', async () => {
    api.tokens.clear();
    const pair = (await api.send('/auth', good('auth'))).json;
    await api.tokenOf('shop');
    await api.sql('update merchants set suspended_at = now() where affiliate_id = $1', [api.affiliateId]);
    await expect.poll(async () => (await api.call('/get_rates', {})).json.error).toBe('account_suspended');
    for (const name of WITH_TOKEN) await refused(name, 'account_suspended', good(name));
    await refused('auth', 'account_suspended', good('auth'));
    await refused('refresh', 'account_suspended', pair);
    await api.sql('update merchants set suspended_at = null');
  });
  test('too many calls, and calls without TLS', async () => {
    const strict = await makeApi({ rateLimitScale: 0.001 });
    await strict.tokenOf('shop');
    for (const name of NAMES) {
      const { path, access } = MERCHANT_API[name];
      const call = () => (access.kind === 'token' ? strict.call(path, good(name)) : strict.send(path, good(name)));
      if (name !== 'auth') await call();
      if (name === 'signOut')
        strict.tokens.set('shop', (await signIn(strict.ctx, { username: 'shop', password: PASSWORD })).accessToken);
      const reply = note(name, await call());
      expect([name, reply.json.error]).toEqual([name, 'rate_limited']);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    await strict.end();
    const open = await makeApi({ network: 'regtest' });
    for (const name of NAMES) {
      expect(note(name, await open.send(MERCHANT_API[name].path, good(name))).json.error).toBe('https_required');
    }
    await open.end();
  });
  test('a bug is told as internal_error without a word about it, a database that is away as overloaded', async () => {
    const token = await api.tokenOf('shop');
    const tables = [
      'public.sign_ins',
      'public.users',
      'public.merchants',
      'public.transactions',
      'public.merchant_settings',
      'public.rates',
    ];
    tables.push('ledger.account', 'public.signing_keys');
    const existing: string[] = [];
    for (const table of tables) {
      const [schema, name] = table.split('.') as [string, string];
      const [{ n }] = (await api.sql('select count(*)::int as n from pg_tables where schemaname = $1 and tablename = $2', [
        schema,
        name,
      ])) as [{ n: number }];
      if (n === 1) existing.push(table);
    }
    const renew = (await api.send('/auth', good('auth'))).json;
    await api.call('/get_rates', {});
    for (const table of existing) await api.sql(`alter table ${table} rename to ${table.split('.')[1]}_away`);
    for (const name of NAMES) {
      const body = name === 'refresh' ? renew : { access_token: token, ...good(name) };
      const reply = note(name, await api.send(MERCHANT_API[name].path, body));
      expect([name, reply.status, reply.text]).toEqual([
        name,
        500,
        '{"error":"internal_error","message":"Something went wrong on our side."}',
      ]);
    }
    for (const table of existing) await api.sql(`alter table ${table}_away rename to ${table.split('.')[1]}`);
    expect(api.bugs.length).toBeGreaterThanOrEqual(NAMES.length);

    const db = connect({
      url: `postgres://x@127.0.0.1:${await freePort()}/x`,
      role: null,
      maxConnections: 2,
      applicationName: 'test',
    });
    const ctx = { ...api.ctx, db };
    const authenticator = createAuthenticator(ctx);
    const away = createServer({
      ctx,
      authenticator,
      network: 'sandbox',
      publicUrl: null,
      rateLimitScale: 1000,
      neighbours: NO_NEIGHBOURS,
      trustedProxies: [],
      sandbox: null,
      bell: { next: () => Promise.resolve() },
      report: () => undefined,
      version: '0',
    });
    const base = await away.listen({ port: 0, host: '127.0.0.1' });
    const post = async (path: string, body: object): Promise<Reply> => {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
    };
    for (const name of NAMES) {
      const body = name === 'refresh' ? renew : { access_token: token, ...good(name) };
      const reply = note(name, await post(MERCHANT_API[name].path, body));
      expect([name, reply.json.error]).toEqual([name, 'overloaded']);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    expect((await fetch(`${base}/readyz`)).status).toBe(503);
    expect((await fetch(`${base}/healthz`)).status).toBe(200);
    await away.close();
    await authenticator.close();
    await db.close();
  });
  test('every refusal that a document names has been given', () => {
    // no payout is stored in this version, so that its key never stands for another body
    const never: Partial<Record<Name, string[]>> = { requestPayout: ['idempotency_conflict'] };
    for (const name of NAMES) {
      const documented = refusalsOf(MERCHANT_API[name]).filter((code) => !never[name]?.includes(code));
      expect({ [name]: documented.filter((code) => !seen.get(name)?.has(code)) }).toEqual({ [name]: [] });
    }
  });
});
