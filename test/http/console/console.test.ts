// The operator's console: who has been on the service's machine sees what is wrong and what waits, over all merchants, and can change nothing.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeOperatorCode } from '../../../src/flow/sign-in/operator-sessions.ts';
import { fund, owe } from '../../support/funded.ts';
import { type ApiServer, makeApi } from '../api-server.ts';
import { openBrowser, signedInBrowser, words } from '../portal/browser.ts';

const PATHS = ['/ops', '/ops/chains', '/ops/reviews', '/ops/payouts', '/ops/merchants'];

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const isClosed = (text: string): boolean => text.includes('action="/ops/sign-in"');
async function operator() {
  const browser = openBrowser(api.base);
  const shown = await browser.post('/ops/sign-in', { code: ` ${makeOperatorCode(api.ctx)} ` });
  expect([shown.status, shown.path]).toEqual([200, '/ops']);
  return browser;
}

describe('who may see it', () => {
  test('nobody without a code, and no merchant', async () => {
    const merchant = await signedInBrowser(api);
    for (const path of PATHS) {
      expect(isClosed((await openBrowser(api.base).get(path)).text)).toBe(true);
      expect(isClosed((await merchant.get(path)).text)).toBe(true);
    }
    expect((await openBrowser(api.base).getOnce('/ops')).headers.get('ratelimit-policy')).toContain('"anonymous"');
  });

  test('a code counts once, for five minutes, and no other text does', async () => {
    const code = makeOperatorCode(api.ctx);
    const [madeAt, nonce, seal] = code.split('.') as [string, string, string];
    const later = (Number.parseInt(madeAt, 36) + 1_000).toString(36);
    const others = [
      '',
      'x',
      '..',
      `${later}.${nonce}.${seal}`,
      `${madeAt}.x.${seal}`,
      `${madeAt}.${nonce}.`,
      `${code}x`,
      `${code}.x`,
    ];
    for (const other of others) {
      const refused = await openBrowser(api.base).post('/ops/sign-in', { code: other });
      expect([other, refused.status]).toEqual([other, 401]);
      expect(refused.text).toContain('This is no code of this service');
    }
    expect((await openBrowser(api.base).post('/ops/sign-in', { code })).status).toBe(200);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code })).status).toBe(401);
    const old = makeOperatorCode(api.ctx);
    api.advance(300);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code: old })).status).toBe(401);
  });

  test('a clock that is set back by more than a minute ends codes and sessions, and makes no code count twice', async () => {
    const [browser, code, other] = [await operator(), makeOperatorCode(api.ctx), makeOperatorCode(api.ctx)];
    api.advance(-60);
    expect(isClosed((await browser.get('/ops')).text)).toBe(false);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code })).status).toBe(200);
    api.advance(330);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code })).status).toBe(401);
    api.advance(-270);
    const later = await operator();
    api.advance(-60.001);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code: other })).status).toBe(401);
    expect(isClosed((await later.get('/ops')).text)).toBe(true);
    api.advance(60.001);
  });

  test('a code is no session, a session no code, and neither is one of a merchant', async () => {
    const browser = await operator();
    const session = (browser.cookie() as string).split('=')[1] as string;
    expect((await openBrowser(api.base).post('/ops/sign-in', { code: session })).status).toBe(401);
    for (const other of [makeOperatorCode(api.ctx), `${session}x`, session.slice(1), session.replace('.', '')]) {
      browser.setCookie(`bursar_operator=${other}`);
      expect(isClosed((await browser.get('/ops')).text)).toBe(true);
    }
    browser.setCookie(`bursar=${session}`);
    expect((await browser.get('/balances')).text).toContain('action="/sign-in"');
  });

  test('a session ends 15 minutes after its last page, 12 hours after it began, and when it is signed out', async () => {
    const idle = await operator();
    api.advance(890);
    expect(isClosed((await idle.get('/ops')).text)).toBe(false);
    api.advance(900);
    expect(isClosed((await idle.get('/ops')).text)).toBe(true);
    const busy = await operator();
    let pages = 0;
    for (; !isClosed((await busy.get('/ops/merchants')).text); pages++) api.advance(600);
    expect(pages).toBe(72);
    await api.reopen();
    const leaving = await operator();
    const form_token = /name="form_token" value="([^"]+)"/.exec((await leaving.get('/ops')).text)?.[1] as string;
    expect((await leaving.post('/ops/sign-out', { form_token: 'x' })).status).toBe(400);
    expect(isClosed((await leaving.post('/ops/sign-out', { form_token })).text)).toBe(true);
    expect(leaving.cookie()).toBeNull();
  });

  test('a form that another site sends opens and ends nothing', async () => {
    const code = makeOperatorCode(api.ctx);
    const foreign = await openBrowser(api.base).post('/ops/sign-in', { code }, { 'sec-fetch-site': 'cross-site' });
    expect(foreign.status).toBe(400);
    expect((await openBrowser(api.base).post('/ops/sign-in', { code })).status).toBe(200);
  });

  test('outside the sandbox it is there over TLS only', async () => {
    const real = await makeApi({ network: 'regtest', trustedProxies: ['127.0.0.1'] });
    expect((await openBrowser(real.base).get('/ops')).status).toBe(403);
    const browser = openBrowser(real.base, { 'x-forwarded-proto': 'https' });
    await browser.post('/ops/sign-in', { code: makeOperatorCode(real.ctx) });
    expect(browser.cookie()).toMatch(/^__Host-bursar_operator=/);
    await real.end();
  });
});

describe('what it shows', () => {
  test.each(PATHS)('%s loads styles of ours only, stands in no frame and says where it is', async (path) => {
    const { status, headers, text } = await (await operator()).get(path);
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; style-src 'self'");
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text.match(/aria-current="page"/g)).toHaveLength(1);
    expect(text).not.toMatch(/<script|style=|<img/);
    expect((await api.send(path, {}, {}, 'POST')).status).toBe(405);
  });

  test('what is wrong, what the service has and what merchants have of it', async () => {
    const merchantId = BigInt((await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]))[0].id);
    await fund(api.ctx, merchantId, 150_000_000n);
    await api.sql(
      `insert into breakers (name, tripped_by, findings, tripped_at, seen_at) values ('payouts', '{BOOK-1}', '{x}', now(), now())`,
    );
    const shown = words((await (await operator()).get('/ops')).text);
    expect(shown).toContain('payouts are stopped by a red audit (BOOK-1): see bursar audit');
    expect(shown).toContain('Stopped by a red audit payouts');
    expect(shown).toContain('asset:chain:BTC 1.50000000 BTC');
    expect(shown).toContain('available 1.50000000 BTC');
    await api.sql(`delete from breakers`);
  });

  test('nodes and prices', async () => {
    const shown = words((await (await operator()).get('/ops/chains')).text);
    expect(shown).toMatch(/BTC ready 100/);
    expect(shown).toMatch(/BTC 65000\.00 USD/);
    expect(shown).not.toMatch(/DOGE/);
  });

  test('payouts of every merchant that are not over, without the numbers of bank accounts', async () => {
    const merchantId = BigInt((await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]))[0].id);
    await owe(api.ctx, merchantId, 1n);
    const destination = 'ach:021000021:123456789:checking';
    const { json } = await api.call('/request_payout', { method: 'ach', amount: '100', destination, source_currency: 'BTC' });
    const shown = words((await (await operator()).get('/ops/payouts')).text);
    expect(shown).toContain(json.payout.id);
    expect(shown).toContain('receivable');
    expect(shown).not.toContain('123456789');
    await owe(api.ctx, merchantId, -1n);
  });

  test('merchants and their users, as words', async () => {
    const shown = await (await operator()).get('/ops/merchants');
    expect(words(shown.text)).toContain('The Shop shop@example.com');
    expect(words(shown.text)).toContain('only.read (read)');
  });
});
