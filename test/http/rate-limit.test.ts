// Rate limits: the numbers of behaviour §1 on every answer, per merchant and per address, on the service's clock, never delaying.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MERCHANT_API, type MerchantApi } from '../../src/contract/merchant-api.ts';
import { addressKey } from '../../src/http/client-address.ts';
import { createLimiter } from '../../src/http/rate-limit.ts';
import { type ApiServer, makeApi, PASSWORD, type Reply } from './api-server.ts';

const limits = (reply: Reply) =>
  ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].map((name) =>
    reply.headers.get(name),
  );

describe('over HTTP', () => {
  let api: ApiServer;
  beforeAll(async () => {
    api = await makeApi({ rateLimitScale: 1, trustedProxies: ['127.0.0.1'] });
  });
  afterAll(() => api.end());
  /** As if it came from another network. */
  const from = (ip: string) => ({ 'x-forwarded-for': ip });

  test('every answer says what is left', async () => {
    const { transaction_id } = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json;
    const expected: Record<string, [number, number]> = {
      create_transaction: [120, 58],
      check_transaction: [1200, 1199],
      cancel_transaction: [120, 119],
      request_payout: [20, 19],
      check_payout: [1200, 1199],
      list_payouts: [120, 119],
      cancel_payout: [120, 119],
      get_payout_settings: [120, 119],
      set_payout_settings: [120, 119],
      get_account_info: [120, 119],
      list_transactions: [120, 119],
      resolve_transaction: [120, 119],
      get_settings: [120, 119],
      set_settings: [120, 119],
      list_balance_entries: [120, 119],
      get_rates: [120, 119],
    };
    for (const [name, [limit, remaining]] of Object.entries(expected)) {
      const body = { transaction_id, amount: '5', crypto_selected: 'LTC' };
      const reply = await api.call(`/${name}`, body, from('198.51.100.7'));
      const burst = name === 'create_transaction' ? ';burst=60' : '';
      const reset = name === 'request_payout' ? 3 : 1;
      expect(limits(reply)).toEqual([
        `"${name}";q=${limit};w=60${burst}`,
        `"${name}";r=${remaining};t=${reset}`,
        String(limit),
        String(remaining),
        String(reset),
      ]);
    }
    const refreshed = await api.send('/auth_refresh', {}, from('198.51.100.7'));
    expect(limits(refreshed).slice(2, 4)).toEqual(['30', '29']);
    const signedIn = await api.send('/auth', { username: 'shop', password: PASSWORD }, from('198.51.100.7'));
    expect(limits(signedIn).slice(2, 4)).toEqual(['20', '19']);
    for (const unknown of [api.send('/nothing', {}, from('198.51.100.8')), api.send('/auth', '[', from('198.51.100.9'))]) {
      expect(limits(await unknown).slice(2, 4)).toEqual(['60', '59']);
    }
    expect(limits(await api.send('/openapi.json', undefined, from('198.51.100.8'), 'GET'))[3]).toBe('58');
  });

  test('60 creates in a burst, then 429 with Retry-After; two more a second later; the other merchant is not touched', async () => {
    api.advance(120);
    const create = (username: string) => api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' }, {}, username);
    for (let n = 0; n < 60; n++) expect((await create('other')).status).toBe(200);
    const refused = await create('other');
    expect([refused.status, refused.json.error, refused.headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
    expect((await create('shop')).status).toBe(200);
    api.advance(1);
    expect([(await create('other')).status, (await create('other')).status, (await create('other')).status]).toEqual([
      200, 200, 429,
    ]);
  });

  test('the limit comes after the token and the scope, and before the fields', async () => {
    api.advance(60);
    const bad = () => api.call('/request_payout', {}, {}, 'only.payouts');
    for (let n = 0; n < 20; n++) expect((await bad()).json.error).toBe('missing_field');
    expect((await bad()).json.error).toBe('rate_limited');
    expect((await api.call('/request_payout', {}, {}, 'only.read')).json.error).toBe('insufficient_permissions');
    expect((await api.send('/request_payout', { access_token: 'x' })).json.error).toBe('invalid_token');
  });

  test('20 sign-ins a minute from an address, whoever it is', async () => {
    const attempt = (n: number) => api.send('/auth', { username: `u${n}`, password: 'x' }, from('203.0.113.5'));
    for (let n = 0; n < 20; n++) expect((await attempt(n)).status).toBe(401);
    const refused = await attempt(20);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
    expect((await api.send('/auth', { username: 'shop', password: PASSWORD }, from('203.0.113.6'))).status).toBe(200);
  });

  test('after five failures the right password is refused too, there and for that name only, until the window has passed', async () => {
    const attempt = (username: string, password: string, ip = '203.0.113.9') =>
      api.send('/auth', { username, password }, from(ip));
    for (const name of ['shop', 'SHOP', 'ｓhop', 'shop', 'Shop']) expect((await attempt(name, 'wrong')).status).toBe(401);
    const refused = await attempt('shop', PASSWORD);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '900']);
    // the headers name the limit that refused
    expect(refused.headers.get('ratelimit-policy')).toBe('"auth_failures";q=5;w=900');
    expect(refused.headers.get('ratelimit')).toBe('"auth_failures";r=0;t=900');
    const shown = ['limit', 'remaining', 'reset'].map((one) => refused.headers.get(`x-ratelimit-${one}`));
    expect(shown).toEqual(['5', '0', '900']);
    expect((await attempt('other', PASSWORD)).status).toBe(200);
    expect((await attempt('shop', PASSWORD, '203.0.113.10')).status).toBe(200);
    api.advance(899);
    expect((await attempt('shop', PASSWORD)).status).toBe(429);
    api.advance(1);
    expect((await attempt('shop', PASSWORD)).status).toBe(200);
  });

  test('60 calls a minute without a good token, by address, IPv6 by /64', async () => {
    const attempt = (n: number) => api.send(n % 2 ? '/get_rates' : '/nothing', { access_token: 'x' }, from(`2001:db8:0:1::${n}`));
    for (let n = 1; n <= 60; n++) expect((await attempt(n)).status).toBe(n % 2 ? 401 : 404);
    expect([(await attempt(61)).status, (await attempt(62)).status]).toEqual([429, 429]);
    expect((await api.send('/nothing', {}, from('2001:db8:0:2::1'))).status).toBe(404);
    // a signed-in caller is not affected by others at the same address
    api.tokens.clear();
    expect((await api.call('/get_rates', {}, from('2001:db8:0:1::1'))).status).toBe(200);
    for (let n = 0; n < 100; n++)
      expect((await api.send('/healthz', undefined, from('2001:db8:0:1::1'), 'GET')).status).toBe(200);
  });
});

describe('X-Forwarded-For', () => {
  test('counts for nothing when the proxy is not trusted', async () => {
    const api = await makeApi({ rateLimitScale: 1 });
    for (let n = 0; n < 60; n++) await api.send('/nothing', {}, { 'x-forwarded-for': `203.0.113.${n}` });
    expect((await api.send('/nothing', {}, { 'x-forwarded-for': '203.0.113.99' })).status).toBe(429);
    await api.end();
  });

  test('is one address whatever port the proxy writes with it, and what is no address is one too', async () => {
    const api = await makeApi({ rateLimitScale: 1, trustedProxies: ['127.0.0.1'] });
    const lastOf = async (written: (n: number) => string) => {
      for (let n = 0; n < 60; n++) expect((await api.send('/nothing', {}, { 'x-forwarded-for': written(n) })).status).toBe(404);
      return (await api.send('/nothing', {}, { 'x-forwarded-for': written(60) })).status;
    };
    expect(await lastOf((n) => `203.0.113.7:${40_000 + n}`)).toBe(429);
    expect(await lastOf((n) => `[2001:db8::1]:${40_000 + n}`)).toBe(429);
    expect(await lastOf((n) => `unknown${n}`)).toBe(429);
    await api.end();
  });

  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:4711', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::6', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::6]:4711', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::6]', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['1::3:4:5:6:192.0.2.1', '1:0:3:4::/64'],
    ['::', '0:0:0:0::/64'],
    ['999.0.0.1', 'no address'],
    ['203.0.113.7:', 'no address'],
    ['', 'no address'],
    [undefined, 'gone'],
  ])('%s counts as %s', (written, key) => {
    expect(addressKey(written)).toBe(key);
  });
});

describe('what anybody can make the server look up', () => {
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const forged = (kid: string) => `${encoded({ alg: 'EdDSA', typ: 'at+jwt', kid })}.${encoded({})}.${'A'.repeat(86)}`;
  const kidOf = (n: number) => `forged-${n}`.padEnd(16, '_');

  /** Runs the work while nobody can read this table. */
  async function withLocked<T>(api: ApiServer, table: string, work: () => Promise<T>): Promise<T> {
    await api.sql('begin');
    await api.sql(`lock table ${table} in access exclusive mode`);
    const result = await work();
    await api.sql('commit');
    return result;
  }
  /** How many statements wait for a lock of this table. */
  async function waitingFor(api: ApiServer, table: string): Promise<number> {
    const [row] = await api.sql(`select count(*)::int as n from pg_locks where relation = $1::regclass and not granted`, [table]);
    return row.n;
  }

  test('the key of a token is counted by address before the database is asked, and not again by its refusal', async () => {
    const api = await makeApi({ rateLimitScale: 1 });
    const call = (kid: string) => api.send('/get_account_info', { access_token: forged(kid) });
    const calls: Promise<Reply>[] = [];
    const refused = await withLocked(api, 'signing_keys', async () => {
      for (let n = 0; n < 70; n++) calls.push(call(kidOf(n)));
      const first = await Promise.all(Array.from({ length: 10 }, () => Promise.race(calls.map((one, n) => one.then(() => n)))));
      return first.length;
    });
    expect(refused).toBe(10);
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(60);
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
    await api.end();
  });

  test('a key that the database does not have is not asked for again at once', async () => {
    const api = await makeApi();
    const call = () => api.send('/get_account_info', { access_token: forged(kidOf(0)) });
    expect((await call()).json.error).toBe('invalid_token');
    await withLocked(api, 'signing_keys', async () => expect((await call()).json.error).toBe('invalid_token'));
    await api.end();
  });

  test('whose a token is that must be asked now is one statement at a time, however many calls there are', async () => {
    const api = await makeApi();
    const body = { method: 'bitcoin', amount: '0.001', destination: 'bcrt1qq5nunksgr27r57vrpp2xzc2nlwrv3xmdhydntp' };
    const token = { access_token: await api.tokenOf('only.read'), ...body };
    await api.send('/request_payout', token);
    const calls = await withLocked(api, 'sign_ins', async () => {
      const begun = Array.from({ length: 30 }, () => api.send('/request_payout', token));
      await expect.poll(() => waitingFor(api, 'sign_ins')).toBeGreaterThan(0);
      for (let n = 0; n < 20; n++) {
        await api.send('/healthz', undefined, {}, 'GET');
        expect(await waitingFor(api, 'sign_ins')).toBe(1);
      }
      return begun;
    });
    for (const reply of await Promise.all(calls)) expect(reply.json.error).toBe('insufficient_permissions');
    await api.end();
  });
});

describe('the buckets', () => {
  test('never allow more than burst + rate × time, and always as much, whatever the rhythm', () => {
    const pauses = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(pauses, fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 200 }), (steps, perMinute, burst) => {
        const limiter = createLimiter<string>('x', { perMinute, burst }, 1);
        let now = 1_000_000;
        let taken = 0;
        let free = burst;
        for (const pause of steps) {
          now += pause;
          free = Math.min(burst, free + (pause * perMinute) / 60_000);
          const allowed = limiter.take('k', now);
          if (Math.abs(free - 1) > 1e-6) expect(allowed).toBe(free >= 1);
          if (allowed) {
            taken += 1;
            free -= 1;
          }
        }
        expect(taken).toBeLessThanOrEqual(burst + ((now - 1_000_000) * perMinute) / 60_000 + 1e-6);
      }),
    );
  });
  test('a clock that goes back takes nothing and gives nothing', () => {
    const limiter = createLimiter<string>('x', { perMinute: 60 }, 1 / 60);
    expect([limiter.take('k', 5000), limiter.take('k', 1000), limiter.take('k', 1500), limiter.take('k', 61_000)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
  test('memory stays bounded under 300,000 addresses', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const limiter = createLimiter<string>('x', { perMinute: 60 }, 1);
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 300_000; n++) {
      void limiter.take(`ip ${n}`, n / 100);
    }
    collect();
    expect((process.memoryUsage().heapUsed - before) / 1e6).toBeLessThan(60);
    // it is still alive: what it holds was measured
    expect(limiter.take('ip 299999', 3000)).toBe(true);
  });
  test.each(Object.keys(MERCHANT_API) as (keyof MerchantApi)[])('%s has a limit', (name) => {
    expect(MERCHANT_API[name].limit.perMinute).toBeGreaterThan(0);
  });
  test('addresses: IPv4 as it is, mapped too, IPv6 by its network', () => {
    expect(
      ['10.1.2.3', '::ffff:10.1.2.3', '::1', '2001:db8::5', '2001:DB8:0:0:9:8:7:6', 'fe80::1%eth0', '1:2:3:4:5:6:7:8'].map(
        addressKey,
      ),
    ).toEqual([
      '10.1.2.3',
      '10.1.2.3',
      '0:0:0:0::/64',
      '2001:db8:0:0::/64',
      '2001:db8:0:0::/64',
      'fe80:0:0:0::/64',
      '1:2:3:4::/64',
    ]);
  });
});
