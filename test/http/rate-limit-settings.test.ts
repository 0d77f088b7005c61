// Every number of behaviour §1's limits is a setting: those that BURSAR_RATE_LIMITS names count in the place of the table's, the others stay.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rateLimits } from '../../src/main/config/rate-limits.ts';
import { type ApiServer, makeApi, PASSWORD } from './api-server.ts';

describe('with limits of its own', () => {
  let api: ApiServer;
  beforeAll(async () => {
    const set = rateLimits('get_rates=2, create_transaction=6/3, anonymous=4, failed_sign_ins=2');
    api = await makeApi({ rateLimitScale: 1, rateLimits: set, trustedProxies: ['127.0.0.1'] });
  });
  afterAll(() => api.end());
  const from = (ip: string) => ({ 'x-forwarded-for': ip });
  const statuses = async (count: number, call: () => Promise<{ readonly status: number }>) => {
    const seen: number[] = [];
    for (let n = 0; n < count; n++) seen.push((await call()).status);
    return seen;
  };

  test('an operation has the calls, and the burst, that are set', async () => {
    expect(await statuses(3, () => api.call('/get_rates', {}))).toEqual([200, 200, 429]);
    const create = () => api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
    const first = await create();
    expect(first.headers.get('ratelimit-policy')).toBe('"create_transaction";q=6;w=60;burst=3');
    expect(await statuses(3, create)).toEqual([200, 200, 429]);
    expect((await api.call('/get_settings', {})).headers.get('x-ratelimit-limit')).toBe('120');
  });

  test('calls without a sign-in too', async () => {
    const stranger = () => api.send('/nothing', {}, from('198.51.100.1'));
    expect(await statuses(5, stranger)).toEqual([404, 404, 404, 404, 429]);
  });

  test('failed sign-ins too', async () => {
    const signIn = (password: string) => api.send('/auth', { username: 'shop', password }, from('198.51.100.2'));
    expect(await statuses(2, () => signIn('wrong'))).toEqual([401, 401]);
    expect((await signIn(PASSWORD)).status).toBe(429);
  });
});

test.each(['nothing=5', 'auth', 'auth=0', 'auth=5,auth=6', 'auth=5/0', 'auth=1.5', 'AUTH=5', ''])('%j is refused', (text) => {
  expect(() => rateLimits(text)).toThrow(/^limits such as create_transaction=/);
});
