// Who is signed in to the portal, for how long, and that nothing else counts as a session.
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resumeMerchant, setUser, suspendMerchant } from '../../../src/flow/merchants/merchants.ts';
import { readPortalSession } from '../../../src/flow/sign-in/portal-sessions.ts';
import { createTokens } from '../../../src/outside/jwt.ts';
import { OUTSIDE } from '../../support/funded.ts';
import { type ApiServer, makeApi, PASSWORD } from '../api-server.ts';
import { openBrowser, signedInBrowser, words } from './browser.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

const isSignIn = (text: string): boolean => text.includes('action="/sign-in"');

describe('signing in', () => {
  test('whoever is not signed in gets the form, and then the page that was asked for', async () => {
    const browser = openBrowser(api.base);
    const shown = await browser.get('/transactions?status=review');
    expect(shown.status).toBe(200);
    expect(isSignIn(shown.text)).toBe(true);
    const next = /name="next" value="([^"]+)"/.exec(shown.text)?.[1] as string;
    const signedIn = await browser.post('/sign-in', { username: 'shop', password: PASSWORD, next });
    expect(signedIn.path).toBe('/transactions?status=review');
    expect(words(signedIn.text)).toContain('Payments');
    expect(signedIn.text).toContain('users/shop">shop</a>');
  });

  test('a wrong password and an unknown user are told alike, and set no cookie', async () => {
    const pages = [];
    for (const username of ['shop', 'nobody']) {
      const browser = openBrowser(api.base);
      const shown = await browser.post('/sign-in', { username, password: 'wrong horse battery' });
      expect(shown.status).toBe(401);
      expect(browser.cookie()).toBeNull();
      pages.push(shown.text.replaceAll(`value="${username}"`, ''));
    }
    expect(pages[0]).toContain('The username or password is incorrect.');
    expect(pages[0]).toBe(pages[1]);
  });

  test('leads to pages of the portal only', async () => {
    for (const next of [
      'https://evil.example/',
      '//evil.example',
      '/\\evil.example',
      '/create_transaction',
      'transactions',
      '',
      '/transactions/\r\nSet-Cookie: bursar=x',
      '/transactions?label=\u20ac',
      '/?\u0000',
    ]) {
      const browser = openBrowser(api.base);
      const { headers } = await browser.postOnce('/sign-in', { username: 'shop', password: PASSWORD, next });
      expect([next, headers.get('location')]).toEqual([next, '/']);
    }
  });

  test('the address of a page that was refused leads to the form', async () => {
    for (const path of ['/sign-in', '/sign-out']) expect(isSignIn((await openBrowser(api.base).get(path)).text)).toBe(true);
  });

  test('guesses are counted together with those of the API', async () => {
    const counted = await makeApi({ rateLimitScale: 1 });
    const { base, send } = counted;
    for (let i = 0; i < 3; i++) await send('/auth', { username: 'shop', password: 'wrong horse battery' });
    for (let i = 0; i < 2; i++) await openBrowser(base).post('/sign-in', { username: 'shop', password: 'wrong horse battery' });
    const refused = await openBrowser(base).post('/sign-in', { username: 'shop', password: PASSWORD });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '900']);
    expect((await send('/auth', { username: 'shop', password: PASSWORD })).status).toBe(429);
    await counted.end();
  });

  test('the cookie is hidden from scripts and from what other sites begin', async () => {
    const { headers } = await openBrowser(api.base).postOnce('/sign-in', { username: 'shop', password: PASSWORD });
    expect(headers.get('set-cookie')).toMatch(/^bursar=[A-Za-z0-9._-]+; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  test('outside the sandbox there is no page without TLS, and the cookie is of this host over TLS alone', async () => {
    const real = await makeApi({ network: 'regtest', trustedProxies: ['127.0.0.1'] });
    expect((await openBrowser(real.base).get('/')).status).toBe(403);
    const tls = { 'x-forwarded-proto': 'https' };
    const browser = await signedInBrowser(real, 'shop', tls);
    expect(browser.cookie()).toMatch(/^__Host-bursar=/);
    const { headers } = await openBrowser(real.base, tls).postOnce('/sign-in', { username: 'shop', password: PASSWORD });
    expect(headers.get('set-cookie')).toMatch(/; Secure$/);
    // a cookie that was set without TLS is none
    browser.setCookie((browser.cookie() as string).replace('__Host-', ''));
    expect(isSignIn((await browser.get('/')).text)).toBe(true);
    await real.end();
  });
});

describe('a session', () => {
  test('is no access token, and an access token or a refresh token is no session', async () => {
    const browser = await signedInBrowser(api);
    const token = (browser.cookie() as string).split('=')[1] as string;
    expect((await api.send('/get_account_info', { access_token: token })).json.error).toBe('invalid_token');
    const pair = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
    const refreshed = await api.send('/auth_refresh', { access_token: pair.access_token, refresh_token: token });
    expect(refreshed.json.error).toBe('invalid_token');
    for (const other of [pair.access_token, pair.refresh_token, `${token}x`, token.slice(0, -1), 'x', '']) {
      browser.setCookie(`bursar=${other}`);
      expect(isSignIn((await browser.get('/')).text)).toBe(true);
    }
  });

  test('ends 15 minutes after the last page, and not before', async () => {
    const browser = await signedInBrowser(api);
    for (let i = 0; i < 3; i++) {
      api.advance(890);
      expect(isSignIn((await browser.get('/balances')).text)).toBe(false);
    }
    api.advance(900);
    expect(isSignIn((await browser.get('/balances')).text)).toBe(true);
  });

  test('is renewed once a minute, and goes on at every process, whichever renewed it', async () => {
    const browser = await signedInBrowser(api);
    api.advance(59);
    expect((await browser.get('/balances')).headers.get('set-cookie')).toBeNull();
    api.advance(1);
    const { clock } = api.ctx.ports;
    const other = { ...api.ctx, ports: { ...api.ctx.ports, tokens: createTokens({ clock, audience: 'sandbox' }) } };
    const shown = (browser.cookie() as string).split('=')[1] as string;
    const { token } = await readPortalSession(other, shown, { admit: async () => undefined, unknown: new Map() });
    expect(token).not.toBe(shown);
    browser.setCookie(`bursar=${token}`);
    const page = await browser.get('/balances');
    expect(isSignIn(page.text)).toBe(false);
    expect(page.headers.get('set-cookie')).toBeNull();
    api.advance(60);
    expect((await browser.get('/balances')).headers.get('set-cookie')).toMatch(/^bursar=/);
  });

  test('ends 12 hours after signing in, whatever is looked at', async () => {
    const browser = await signedInBrowser(api);
    let pages = 0;
    while (!isSignIn((await browser.get('/balances')).text)) {
      api.advance(600);
      pages += 1;
    }
    expect(pages).toBe(72);
    await api.reopen();
  });

  test('ends for every browser that has its cookie when it is signed out', async () => {
    const browser = await signedInBrowser(api);
    const copy = openBrowser(api.base);
    copy.setCookie(browser.cookie());
    const page = await browser.get('/balances');
    const formToken = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] as string;
    expect(isSignIn((await browser.post('/sign-out', { form_token: formToken })).text)).toBe(true);
    expect(browser.cookie()).toBeNull();
    expect(isSignIn((await copy.get('/balances')).text)).toBe(true);
  });

  test('ends when the password is changed', async () => {
    const browser = await signedInBrowser(api, 'only.read');
    await setUser(api.ctx, { username: 'only.read', password: 'another horse battery' });
    expect(isSignIn((await browser.get('/balances')).text)).toBe(true);
  });

  test.each([
    ['its scopes are changed', () => setUser(api.ctx, { username: 'only.payouts', scopes: ['read'] })],
    [
      'it is signed out',
      () => api.sql(`update sign_ins set revoked_at = now(), revoked_because = 'signed_out' where revoked_at is null`),
    ],
  ])('does nothing any more where %s while the password is compared', async (_what, end) => {
    await setUser(api.ctx, { username: 'only.payouts', scopes: ['read', 'payouts'] });
    const browser = await signedInBrowser(api, 'only.payouts');
    const path = '/settings/payouts';
    const before = await api.sql('select * from payout_settings');
    await api.sql('begin');
    await api.sql('lock table failed_sign_ins in access exclusive mode');
    const fields = { enabled: 'true', method: 'bitcoin', destination: OUTSIDE, threshold: '0.01', leave: '0' };
    const sent = browser.submit(path, 'save', { ...fields, password: PASSWORD });
    const waiting = `select 1 from pg_locks where relation = 'failed_sign_ins'::regclass and not granted`;
    while ((await api.sql(waiting)).length === 0) await setImmediate();
    await end();
    await api.sql('commit');
    expect(isSignIn((await sent).text)).toBe(true);
    expect(await api.sql('select * from payout_settings')).toEqual(before);
  });

  test('of a merchant who is suspended shows nothing and does nothing', async () => {
    const browser = await signedInBrowser(api, 'other');
    await suspendMerchant(api.ctx, { affiliateId: api.otherAffiliateId });
    const shown = await browser.get('/balances');
    expect(shown.status).toBe(403);
    expect(words(shown.text)).toContain('This account is suspended.');
    expect(shown.text).not.toContain('BTC');
    await resumeMerchant(api.ctx, { affiliateId: api.otherAffiliateId });
  });

  test('is not made by whoever can only write to the database', async () => {
    const browser = await signedInBrowser(api);
    await api.sql(
      `update sign_ins set user_id = (select id from users where username_key = 'other') where user_id = (select id from users where username_key = 'shop')`,
    );
    expect(isSignIn((await browser.get('/balances')).text)).toBe(true);
  });
});
