// What the forms of the portal do: once, for the session that they were made for, and only what its user may do.
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { type ApiServer, makeApi, PASSWORD } from '../api-server.ts';
import { hiddenFields, openBrowser, signedInBrowser, words } from './browser.ts';

let api: ApiServer;
let merchantId: bigint;
beforeAll(async () => {
  api = await makeApi();
  await tellFee(api.ctx);
  merchantId = BigInt((await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]))[0].id);
  await fund(api.ctx, merchantId, 100_000_000n);
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const NEW = '/transactions/new';
const PAYMENT = { amount: '25.00', crypto_selected: 'BTC', label: 'order-1042', email: '' };
const PAYOUT = { method: 'bitcoin', amount: '0.01', destination: OUTSIDE, source_currency: '' };
const count = async (table: string): Promise<number> => Number((await api.sql(`select count(*) as n from ${table}`))[0].n);
const balance = async (): Promise<string> => (await api.call('/get_account_info', {})).json.balances.BTC;
/** The sessions of the database that wait for the lock of the payouts. */
const WAITING = `from pg_locks where relation = 'payouts'::regclass and not granted`;
async function waitsForPayouts(): Promise<void> {
  while ((await api.sql(`select pid ${WAITING}`)).length === 0) await setImmediate();
}
const settings = async () => (await api.call('/get_payout_settings', {})).json.settings;

describe('a form', () => {
  test('of nobody who is signed in leads to the form that signs in', async () => {
    const shown = await openBrowser(api.base).post(NEW, { do: 'create', ...PAYMENT });
    expect(shown.text).toContain('name="next" value="/transactions/new"');
  });

  test('that names nothing the page does is refused', async () => {
    const browser = await signedInBrowser(api);
    const fields = hiddenFields((await browser.get(NEW)).text, 'create');
    for (const act of ['', 'cancel', 'constructor', '__proto__', 'toString'])
      expect((await browser.post(NEW, { ...fields, do: act })).status).toBe(400);
  });

  test('in another form than browsers send, or too long, is refused', async () => {
    const browser = await signedInBrowser(api);
    const json = await browser.post(NEW, PAYMENT, { 'content-type': 'application/json' });
    expect(json.status).toBe(415);
    expect((await browser.post(NEW, { ...PAYMENT, label: 'x'.repeat(70_000) })).status).toBe(413);
    const bytes = await fetch(api.base + NEW, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie: browser.cookie() as string },
      body: Buffer.from([0x61, 0x3d, 0xff]),
    });
    expect([bytes.status, await bytes.text()]).toEqual([400, expect.stringContaining('The form is not valid UTF-8.')]);
  });

  test('sent twice asks for one payment', async () => {
    const browser = await signedInBrowser(api);
    const before = await count('transactions');
    const fields = { ...hiddenFields((await browser.get(NEW)).text, 'create'), ...PAYMENT };
    const [first, second] = [await browser.post(NEW, fields), await browser.post(NEW, fields)];
    expect(first.path).toMatch(/^\/transactions\/txn_/);
    expect(second.path).toBe(first.path);
    expect(await count('transactions')).toBe(before + 1);
  });

  test('that is refused is shown again with what was typed and why, at the field', async () => {
    const browser = await signedInBrowser(api);
    const shown = await browser.submit(NEW, 'create', { ...PAYMENT, amount: '0.10', label: '<b>"x"</b>' });
    expect(shown.status).toBe(422);
    expect(shown.text).toContain('value="0.10"');
    expect(shown.text).toContain('value="&lt;b&gt;&quot;x&quot;&lt;/b&gt;"');
    expect(shown.text).toMatch(
      /id="create-amount"[^>]* aria-describedby="create-amount-hint create-amount-wrong" aria-invalid="true"/,
    );
    expect(shown.text).toMatch(/role="alert">[^<]*0\.50/);
    expect(words(shown.text)).not.toContain('<b>x');
  });
});

describe('what may move money', () => {
  test('asks for the password, and does nothing without it', async () => {
    const browser = await signedInBrowser(api);
    const before = [await count('payouts'), await balance()];
    for (const password of ['', 'wrong horse battery']) {
      const shown = await browser.submit('/payouts/new', 'request', { ...PAYOUT, password });
      expect(shown.status).toBe(401);
      expect(shown.text).toMatch(/id="request-password-wrong">The password is incorrect\./);
      expect(shown.text).not.toContain('wrong horse battery');
    }
    expect([await count('payouts'), await balance()]).toEqual(before);
  });

  test('is sent twice and done once, and the session goes on', async () => {
    const browser = await signedInBrowser(api);
    const before = await count('payouts');
    const fields = {
      ...hiddenFields((await browser.get('/payouts/new')).text, 'request'),
      ...PAYOUT,
      password: PASSWORD,
    };
    const [first, second] = await Promise.all([browser.post('/payouts/new', fields), browser.post('/payouts/new', fields)]);
    const third = await browser.post('/payouts/new', fields);
    expect(third.path).toMatch(/^\/payouts\/payout_/);
    for (const one of [first, second]) expect([third.path, '/payouts/new']).toContain(one.path);
    expect(words(third.text)).toContain('Payout of 0.01 BTC');
    expect(await count('payouts')).toBe(before + 1);
    expect((await browser.get('/balances')).text).toContain('users/shop">shop</a>');
  });

  test('is done once where it is sent, refused while it is being done, and sent again from the page that says so', async () => {
    const browser = await signedInBrowser(api);
    const before = await count('payouts');
    const fields = { ...hiddenFields((await browser.get('/payouts/new')).text, 'request'), ...PAYOUT, password: PASSWORD };
    await api.sql('begin');
    await api.sql('lock table payouts in access exclusive mode');
    const first = browser.post('/payouts/new', fields);
    await waitsForPayouts();
    const second = await browser.post('/payouts/new', fields);
    await api.sql('commit');
    const made = await first;
    expect([second.status, words(second.text)]).toEqual([409, expect.stringContaining('still being worked on')]);
    const third = await browser.post('/payouts/new', {
      ...hiddenFields(second.text, 'request'),
      ...PAYOUT,
      password: PASSWORD,
    });
    expect(third.path).toMatch(/^\/payouts\/payout_/);
    expect(third.path).toBe(made.path);
    expect(await count('payouts')).toBe(before + 1);
  });

  test('with other values than those that were done is refused, and says so', async () => {
    const browser = await signedInBrowser(api);
    const hidden = hiddenFields((await browser.get('/payouts/new')).text, 'request');
    const fields = { ...hidden, ...PAYOUT, password: PASSWORD };
    await browser.post('/payouts/new', fields);
    const before = await count('payouts');
    const shown = await browser.post('/payouts/new', { ...fields, amount: '0.011' });
    expect([shown.status, words(shown.text)]).toEqual([409, expect.stringContaining('sent before with other values')]);
    expect(hiddenFields(shown.text, 'request').key).not.toBe(hidden.key);
    expect(await count('payouts')).toBe(before);
  });

  test('of which it is not known whether it was done says so, and is done once when it is sent again', async () => {
    const browser = await signedInBrowser(api);
    const before = await count('payouts');
    const fields = { ...hiddenFields((await browser.get('/payouts/new')).text, 'request'), ...PAYOUT, password: PASSWORD };
    await api.sql('begin');
    await api.sql('lock table payouts in access exclusive mode');
    const cut = browser.post('/payouts/new', fields);
    await waitsForPayouts();
    await api.sql(`select pg_terminate_backend(pid) ${WAITING}`);
    const shown = await cut;
    await api.sql('commit');
    expect([shown.status, words(shown.text)]).toEqual([503, expect.stringContaining('not known whether this was done')]);
    expect(words(shown.text)).toContain('Load this page again');
    expect((await browser.post('/payouts/new', fields)).path).toMatch(/^\/payouts\/payout_/);
    await browser.post('/payouts/new', fields);
    expect(await count('payouts')).toBe(before + 1);
    expect(api.bugs.splice(0)).toHaveLength(1);
  });

  test('leaves no sign-in behind when the password was typed again', async () => {
    const open = async () => Number((await api.sql('select count(*) as n from sign_ins where revoked_at is null'))[0].n);
    const browser = await signedInBrowser(api);
    const before = await open();
    await browser.submit('/payouts/new', 'request', { ...PAYOUT, password: PASSWORD });
    expect(await open()).toBe(before);
  });

  test('a payout is refused with the words of the API', async () => {
    const browser = await signedInBrowser(api);
    const low = await browser.submit('/payouts/new', 'request', { ...PAYOUT, amount: '0.00099999', password: PASSWORD });
    expect([low.status, words(low.text)]).toEqual([422, expect.stringContaining('The minimum of bitcoin is 0.001 BTC')]);
    const foreign = { ...PAYOUT, destination: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', password: PASSWORD };
    expect((await browser.submit('/payouts/new', 'request', foreign)).status).toBe(400);
    expect((await browser.submit('/payouts/new', 'request', { ...PAYOUT, amount: '5', password: PASSWORD })).status).toBe(422);
  });

  test('automatic payouts are set with the password only, wait for 24 hours, and refuse what is below the minimum', async () => {
    const browser = await signedInBrowser(api);
    const path = '/settings/payouts';
    const sent = {
      enabled: 'true',
      method: 'bitcoin',
      destination: OUTSIDE,
      threshold: '0.001',
      leave: '0',
      source_currency: '',
    };
    expect((await browser.submit(path, 'save', { ...sent, password: 'wrong horse battery' })).status).toBe(401);
    const low = await browser.submit(path, 'save', { ...sent, threshold: '0.00099999', password: PASSWORD });
    expect([low.status, words(low.text)]).toEqual([422, expect.stringContaining('0.001')]);
    expect((await settings()).destination).toBeNull();
    const saved = await browser.submit(path, 'save', { ...sent, password: PASSWORD });
    expect(saved.status).toBe(200);
    const usableAt = new Date(api.now() + 86_400_000).toISOString();
    expect(await settings()).toMatchObject({
      enabled: true,
      destination: OUTSIDE,
      threshold: '0.00100000',
      destination_usable_at: usableAt,
    });
    expect(saved.text).toContain(`datetime="${usableAt}"`);
    expect(saved.text).toContain(`value="${OUTSIDE}"`);
    for (const name of ['destination', 'threshold', 'leave'])
      expect([name, (await browser.submit(path, 'save', { ...sent, [name]: ' ', password: PASSWORD })).status]).toEqual([
        name,
        400,
      ]);
    expect((await browser.submit(path, 'save', { ...sent, enabled: '', password: PASSWORD })).status).toBe(400);
    expect((await settings()).enabled).toBe(true);
    const off = await browser.submit(path, 'save', { ...sent, enabled: 'false', password: PASSWORD });
    expect(words(off.text)).toContain('Now off');
    expect((await settings()).enabled).toBe(false);
  });

  test('the rules for payouts are set with the password only; those for payments without', async () => {
    const browser = await signedInBrowser(api);
    const rules = { payout_allow_list: ` ${OUTSIDE}  ach:021000021:0042:savings `, payout_approval_above: '100.00' };
    expect((await browser.submit('/settings', 'rules', { ...rules, password: 'x' })).status).toBe(401);
    expect((await browser.submit('/settings', 'rules', { ...rules, password: PASSWORD })).status).toBe(200);
    expect((await browser.submit('/settings', 'payments', { tolerance_percent: '2', late_payments: 'accept' })).status).toBe(200);
    const { settings: now } = (await api.call('/get_settings', {})).json;
    expect(now).toMatchObject({
      tolerance_percent: '2.00',
      late_payments: 'accept',
      payout_allow_list: [OUTSIDE, 'ach:021000021:0042:savings'],
      payout_approval_above: '100.00',
    });
    const loosened = await browser.submit('/settings', 'rules', {
      payout_allow_list: '',
      payout_approval_above: '',
      password: PASSWORD,
    });
    expect(words(loosened.text)).toMatch(/The destinations as shown from .* The limit for approval as shown from /);
  });
});

describe('a user without a scope', () => {
  const cases = [
    ['only.read', NEW, 'create', 'payments'],
    ['only.read', '/payouts/new', 'request', 'payouts'],
    ['only.payments', '/payouts/new', 'request', 'payouts'],
    ['only.read', '/settings/payouts', 'save', 'payouts'],
    ['only.read', '/settings', 'payments', 'payments'],
    ['only.read', '/settings', 'rules', 'payouts'],
    ['only.read', '/webhooks', 'create', 'payments'],
  ] as const;
  test.each(cases)('%s cannot send %s', async (username, path, act, scope) => {
    const browser = await signedInBrowser(api, username);
    const before = await api.rowCounts();
    const shown = await browser.get(path);
    if (shown.status === 200) {
      expect(shown.text).not.toContain(`name="do" value="${act}"`);
      expect(words(shown.text)).toContain(`This needs the scope ${scope}`);
    } else expect(shown.status).toBe(403); // without `read` there is nothing to see
    const form_token = /name="form_token" value="([^"]+)"/.exec((await browser.get(NEW)).text)?.[1] as string;
    const fields = { ...PAYMENT, ...PAYOUT, url: 'https://shop.example.com/hook', late_payments: 'accept', password: PASSWORD };
    const sent = await browser.post(path, { ...fields, form_token, do: act, key: 'k' });
    expect(sent.status).toBe(403);
    const after = await api.rowCounts();
    for (const name of ['transactions', 'payouts', 'webhooks', 'idempotency_keys'])
      expect([name, after[name]]).toEqual([name, before[name]]);
  });
});
