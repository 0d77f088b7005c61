// What the pages of the portal show: the merchant's own, in the words of the API, and nothing of anybody else.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, makeApi } from '../api-server.ts';
import { hiddenFields, openBrowser, signedInBrowser, words } from './browser.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi({ sandbox: async () => ({ httpStatus: 404, json: '{}' }) });
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const PATHS = [
  '/',
  '/transactions',
  '/transactions/new',
  '/balances',
  '/balances/BTC',
  '/payouts',
  '/payouts/new',
  '/settings',
  '/settings/payouts',
  '/webhooks',
];
const create = async (more: object = {}, username = 'shop') =>
  (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', ...more }, {}, username)).json;

let paid = 0;
/** Payments as watchers and judge leave them: their amounts lie in suspense, and in the balance what is said so. */
async function pay(
  transactionId: string,
  currency: string,
  suspense: string,
  { available = '0', times = 1 } = {},
): Promise<void> {
  for (let i = 0; i < times; i++) {
    paid += 1;
    const txid = paid.toString(16).padStart(64, '0');
    await api.sql(
      `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, seen_at, caught_up_at, found_mined,
                             suspended, in_suspense, credited, in_available)
       values ($1, $2, $3, 0, $4::numeric + $5::numeric, decode($3, 'hex'), 'mined', 90, now(), now(), false, $4, $4, $5, $5)`,
      [transactionId, currency, txid, suspense, available],
    );
  }
}

describe('every page', () => {
  test.each(PATHS)('%s says where it is, may load styles of ours only, and stands in no frame', async (path) => {
    const browser = await signedInBrowser(api);
    const { status, headers, text } = await browser.get(path);
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('ratelimit-policy')).toContain('"portal"');
    expect(text).toMatch(/<title>[^<]+ · Bursar<\/title>/);
    expect(text.match(/<h1>/g)).toHaveLength(1);
    expect(text.match(/aria-current="page"/g)).toHaveLength(1);
    expect(text).not.toMatch(/<script|style=|onclick|<img/);
    expect(text).toContain('Sandbox: test data, no real money');
    const style = /<link rel="stylesheet" href="([^"]+)">/.exec(text)?.[1] as string;
    expect((await browser.get(style)).headers.get('cache-control')).toContain('immutable');
  });

  test('takes other methods not at all, and says which it takes', async () => {
    for (const [path, allow] of [
      ['/', 'GET, HEAD'],
      ['/transactions/txn_0351dYxk0d1Jt8vTgkN1AM', 'GET, HEAD, POST'],
      ['/sign-in', 'GET, HEAD, POST'],
    ] as const) {
      const { status, headers } = await api.send(path, undefined, {}, 'DELETE');
      expect([path, status, headers.get('allow')]).toEqual([path, 405, allow]);
    }
    expect((await api.send('/transaction', undefined, {}, 'GET')).json.error).toBe('not_found');
  });

  test('of nobody who is signed in counts as a call without a sign-in', async () => {
    const { headers } = await openBrowser(api.base).getOnce('/');
    expect(headers.get('ratelimit-policy')).toContain('"anonymous"');
  });
});

describe('payments', () => {
  test('one is shown with what was asked for, its rate, its page for the customer and what happened', async () => {
    const made = await create({ label: 'order-<script>1</script>', expand: ['checkout'] });
    const browser = await signedInBrowser(api);
    const { text } = await browser.get(`/transactions/${made.transaction_id}`);
    const read = words(text);
    for (const part of ['Payment of 25.00 USD', 'Awaiting payment', 'order-<script>1</script>', `${made.crypto_amount} BTC`])
      expect(read).toContain(part);
    expect(read).toContain(`1 BTC = ${made.exchange_rate} USD`);
    expect(text).toContain(made.wallet_address);
    expect(text).toContain(`href="${made.checkout.url}"`);
    expect(text).toContain('order-&lt;script&gt;');
    expect(read).toMatch(/What happened .* started created/);
  });

  test('what came in is shown in the currency that it came in, and so is what can be sent back', async () => {
    const made = await create();
    await pay(made.transaction_id, 'USDT', '25000000');
    await api.sql("update transactions set status = 'review' where id = $1", [made.transaction_id]);
    const read = words((await (await signedInBrowser(api)).get(`/transactions/${made.transaction_id}`)).text);
    expect(read).toContain('25.000000 USDT');
    expect(read).not.toContain('25.000000 BTC');
    expect(read).toContain('Not credited, waits for a decision 25.000000 USDT');
  });

  test('one that is pending and not complete is partly paid, however many decimals its currency has', async () => {
    const browser = await signedInBrowser(api);
    const made = await create();
    await api.sql(
      `update transactions set status = 'pending', currency = 'ETH', amount_due = 15625000000000000, crypto_received = $2 where id = $1`,
      [made.transaction_id, '1234567890123456'],
    );
    const badge = async () => words((await browser.get(`/transactions/${made.transaction_id}`)).text);
    expect(await badge()).toContain('Partly paid');
    await api.sql('update transactions set crypto_received = amount_due + 1 where id = $1', [made.transaction_id]);
    expect(await badge()).toContain('Confirming');
  });

  test('of one that is paid, what is too much can be kept or sent back, or all of it sent back', async () => {
    const made = await create();
    await pay(made.transaction_id, 'BTC', '1000', { available: '38462' });
    await api.sql("update transactions set status = 'succeeded', succeeded_at = now() where id = $1", [made.transaction_id]);
    const { text } = await (await signedInBrowser(api)).get(`/transactions/${made.transaction_id}`);
    expect(hiddenFields(text, 'accept').part).toBe('excess');
    expect(words(text)).toContain('Credited to your balance 0.00038462 BTC');
    expect([...text.matchAll(/<option value="([^"]+)"/g)].map(([, value]) => value)).toEqual(['excess BTC', 'whole BTC']);
    expect(words(text)).toContain('All of it: 0.00039462 BTC, of which your balance pays 0.00038462 BTC');
  });

  test('of one that was accepted in another currency, what is credited can be sent back in that one', async () => {
    const made = await create();
    await pay(made.transaction_id, 'USDT', '1000000', { available: '25000000' });
    await api.sql("update transactions set status = 'succeeded', succeeded_at = now() where id = $1", [made.transaction_id]);
    const browser = await signedInBrowser(api);
    const offered = async () =>
      [...(await browser.get(`/transactions/${made.transaction_id}`)).text.matchAll(/<option value="([^"]+)">([^<]+)</g)].map(
        ([, value, said]) => [value, said],
      );
    const ofUsdt = [
      ['excess USDT', 'Only what was not credited: 1.000000 USDT'],
      ['whole USDT', 'All that came in USDT: 26.000000 USDT, of which your balance pays 25.000000 USDT'],
    ];
    expect(await offered()).toEqual(ofUsdt);
    await pay(made.transaction_id, 'BTC', '0', { available: '38462' });
    const ofBtc = ['whole BTC', 'All of it: 0.00038462 BTC, of which your balance pays 0.00038462 BTC'];
    expect(await offered()).toEqual([ofUsdt[0], ofBtc, ofUsdt[1]]);
  });

  test('of very many payments the newest are shown, and how many there are', async () => {
    const made = await create();
    await pay(made.transaction_id, 'BTC', '1', { times: 150 });
    const { text } = await (await signedInBrowser(api)).get(`/transactions/${made.transaction_id}`);
    expect(words(text)).toContain('The newest 100 of 150.');
    expect(text.match(/0\.00000001 BTC/g)).toHaveLength(100);
  });

  test('of very many events the last are shown, and how many there are', async () => {
    const made = await create();
    await api.sql(
      `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
       select merchant_id, id, n, 'transaction.extra_payment', status, 'more ' || n, now() from transactions, generate_series(2, 150) as n where id = $1`,
      [made.transaction_id],
    );
    const { text } = await (await signedInBrowser(api)).get(`/transactions/${made.transaction_id}`);
    expect(words(text)).toContain('The last 100 of 150.');
    expect(text.match(/more \d+/g)).toHaveLength(100);
    expect(text).toContain('more 150');
  });

  test('of another merchant is not there, and nothing can be done to it', async () => {
    const made = await create({}, 'other');
    const browser = await signedInBrowser(api);
    const path = `/transactions/${made.transaction_id}`;
    for (const at of [
      path,
      '/transactions/txn_0351dYxk0d1Jt8vTgkN1AM',
      '/transactions/x',
      '/payouts/payout_0351dYxk0d1Jt8vTgkN1AM',
    ])
      expect([at, (await browser.get(at)).status]).toEqual([at, 404]);
    const own = await create();
    const fields = hiddenFields((await browser.get(`/transactions/${own.transaction_id}`)).text, 'cancel');
    expect((await browser.post(path, fields)).status).toBe(404);
    expect((await api.call('/check_transaction', { transaction_id: made.transaction_id }, {}, 'other')).json.status).toBe(
      'started',
    );
  });

  test('one that waits can be cancelled, and then no more', async () => {
    const made = await create();
    const browser = await signedInBrowser(api);
    const shown = await browser.submit(`/transactions/${made.transaction_id}`, 'cancel');
    expect(words(shown.text)).toContain('Cancelled');
    expect(shown.text).not.toContain('name="do" value="cancel"');
    expect((await api.call('/check_transaction', { transaction_id: made.transaction_id })).json.status).toBe('cancelled');
  });

  test('one whose payment has confirmations has no button that cancels it', async () => {
    await api.sql(
      `insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at) values ('BTC', 100, 'h', now(), 0, now())`,
    );
    const made = await create();
    await api.sql(
      "update transactions set status = 'pending', confirmed_from_height = 100, confirmed_from_currency = 'BTC' where id = $1",
      [made.transaction_id],
    );
    const checked = (await api.call('/check_transaction', { transaction_id: made.transaction_id })).json;
    expect([checked.status, checked.confirmations > 0]).toEqual(['pending', true]);
    const { text } = await (await signedInBrowser(api)).get(`/transactions/${made.transaction_id}`);
    expect(text).not.toContain('name="do" value="cancel"');
  });

  test('the list shows what its address says, and pages without gap or double', async () => {
    for (let i = 0; i < 25; i++) {
      api.advance(1);
      await create({ label: `listed-${i}`, crypto_selected: i % 2 === 0 ? 'LTC' : 'BTC' });
    }
    const browser = await signedInBrowser(api);
    const labelsOf = (text: string) => [...text.matchAll(/listed-(\d+)/g)].map(([, n]) => Number(n));
    const first = await browser.get('/transactions');
    const older = /<a href="(\/transactions\?after=[^"]+)">Older/.exec(first.text)?.[1] as string;
    const second = await browser.get(older);
    const all = [...labelsOf(first.text), ...labelsOf(second.text)];
    expect(all).toEqual(Array.from({ length: 25 }, (_, i) => 24 - i));
    const litecoin = await browser.get('/transactions?crypto_selected=LTC&status=started&label=');
    expect(labelsOf(litecoin.text)).toEqual(Array.from({ length: 13 }, (_, i) => 24 - 2 * i));
    expect(litecoin.text).toMatch(/<option value="LTC" selected>/);
    expect(words((await browser.get('/transactions?label=nothing')).text)).toContain('No payment matches. Show all');
    expect((await browser.get('/transactions?status=paid')).status).toBe(400);
    expect((await browser.get('/balances/XXX')).status).toBe(404);
  });
});

describe('webhooks', () => {
  test('one is made with a secret that is shown once, gets a new one, and is deleted', async () => {
    const browser = await signedInBrowser(api);
    const made = await browser.submit('/webhooks', 'create', { url: 'http://127.0.0.1:9/hook' });
    const secret = /class="secret">(whsec_[^<]+)</.exec(made.text)?.[1];
    expect(secret).toBeDefined();
    const listed = await browser.get('/webhooks');
    expect(listed.text).toContain('http://127.0.0.1:9/hook');
    expect(listed.text).not.toContain(secret);
    const rotated = await browser.submit('/webhooks', 'rotate');
    expect(/class="secret">(whsec_[^<]+)</.exec(rotated.text)?.[1]).not.toBe(secret);
    await browser.submit('/webhooks', 'remove');
    expect((await api.call('/list_webhooks', {})).json.data).toEqual([]);
  });
});
