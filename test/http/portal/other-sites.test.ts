// Which forms count as sent by a page of ours: those of the same session, from the same site.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, makeApi, PASSWORD } from '../api-server.ts';
import { hiddenFields, openBrowser, signedInBrowser, words } from './browser.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const NEW = '/transactions/new';
const PAYMENT = { amount: '25.00', crypto_selected: 'BTC', label: 'order-1042', email: '' };
const count = async (table: string): Promise<number> => Number((await api.sql(`select count(*) as n from ${table}`))[0].n);

describe('a form', () => {
  test('that another site sends does nothing', async () => {
    const browser = await signedInBrowser(api);
    const before = await count('transactions');
    const fields = { ...hiddenFields((await browser.get(NEW)).text, 'create'), ...PAYMENT };
    const others: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `${api.base}.evil.example` },
    ];
    for (const headers of others) {
      const shown = await browser.post(NEW, fields, headers);
      expect([headers, shown.status]).toEqual([headers, 400]);
      expect(words(shown.text)).toContain('sent by another site: nothing was done');
    }
    const own: Record<string, string>[] = [{ 'sec-fetch-site': 'same-origin', origin: 'null' }, { origin: api.base }];
    expect(await count('transactions')).toBe(before);
    for (const headers of own) expect((await browser.post(NEW, fields, headers)).status).toBe(200);
  });

  test('is our own under the address that a proxy has given us, and leads to pages below it', async () => {
    const behind = await makeApi({ publicUrl: 'https://shop.example.com/money', trustedProxies: ['127.0.0.1'] });
    const tls = { 'x-forwarded-proto': 'https' };
    const [own, foreign] = ['https://shop.example.com', 'https://shop.example.com.evil.example'];
    const fields = { username: 'shop', password: PASSWORD };
    const signedIn = await openBrowser(behind.base, tls).postOnce('/sign-in', fields, { origin: own });
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/money/']);
    expect((await openBrowser(behind.base, tls).postOnce('/sign-in', fields, { origin: foreign })).status).toBe(400);
    const { text } = await openBrowser(behind.base, tls).getOnce('/');
    expect(text).toContain('action="/money/sign-in"');
    expect(text).toContain('href="/money/portal/');
    await behind.end();
  });

  test('without the session’s own token does nothing', async () => {
    const [browser, other] = [await signedInBrowser(api), await signedInBrowser(api)];
    const before = await count('transactions');
    const { form_token: ofOther = '', ...rest } = hiddenFields((await other.get(NEW)).text, 'create');
    for (const form_token of [ofOther, '', ofOther.slice(1)]) {
      const shown = await browser.post(NEW, { ...rest, ...PAYMENT, form_token });
      expect([shown.status, words(shown.text)]).toEqual([400, expect.stringContaining('of another session: nothing was done')]);
    }
    expect((await browser.post(NEW, { ...rest, ...PAYMENT })).status).toBe(400);
    expect(await count('transactions')).toBe(before);
  });
});
