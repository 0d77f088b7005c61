// The checkout page: who has its link sees what he is to pay and nothing else; everybody else sees nothing.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStream } from '../support/event-stream.ts';
import { decodeQr } from '../support/qr-decode.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const BAD_TOKENS = ['zzz', '0'.repeat(22), 'z'.repeat(22), 'txn_0351dYxk0d1Jt8vTgkN1AM', '%00', '..%2f..%2fetc', 'é'];

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

async function create(more: object = {}) {
  const { json } = await api.call('/create_transaction', {
    amount: '25.00',
    crypto_selected: 'BTC',
    expand: ['checkout'],
    ...more,
  });
  return json;
}
const pathOf = (made: { checkout: { url: string } }): string => new URL(made.checkout.url).pathname;
const show = (path: string, headers: Record<string, string> = HTML) => api.send(path, undefined, headers, 'GET');
/** The content of an attribute, as a browser reads it. */
const attribute = (text: string, pattern: RegExp): string =>
  (pattern.exec(text)?.[1] ?? '').replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

describe('the page', () => {
  test('shows amount, address and a QR code that says the same as its link', async () => {
    const made = await create({ label: 'order-1042' });
    const page = await show(pathOf(made));
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const uri = `bitcoin:${made.wallet_address}?amount=${made.crypto_amount}`;
    expect(decodeQr(attribute(page.text, /<img class="qr" src="([^"]+)"/))).toBe(uri);
    expect(attribute(page.text, /<a class="wallet" href="([^"]+)"/)).toBe(uri);
    for (const text of ['25.00 USD', made.crypto_amount, 'The Shop', 'order-1042', 'data-screen="pay"', 'Send Bitcoin'])
      expect(page.text).toContain(text);
    expect(page.text).toContain(`data-copy="${made.wallet_address}"`);
    expect(page.text).toContain(`datetime="${made.expires_at}"`);
  });

  test('has the same link in every answer, and none that can be told from the id', async () => {
    const made = await create();
    const of = { transaction_id: made.transaction_id, expand: ['checkout'] };
    expect((await api.call('/check_transaction', of)).json.checkout).toEqual(made.checkout);
    expect((await api.call('/cancel_transaction', of)).json.checkout).toEqual(made.checkout);
    expect(made.checkout.url).not.toContain(made.transaction_id.slice('txn_'.length));
  });

  test('shows nothing of the merchant but the name and the reference, and not the id', async () => {
    const made = await create({ email: 'customer@example.com' });
    const { text } = await show(pathOf(made));
    expect(text).not.toMatch(/txn_|shop@example\.com|customer@example\.com|access_token|affiliate/);
  });

  test('writes words of a merchant as words', async () => {
    const made = await create({ label: `<img src=x onerror="alert('1')">&` });
    const { text } = await show(pathOf(made));
    expect(text).toContain('&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;');
    expect(text).not.toContain('<img src=x');
  });

  test('may run no script but its own, load nothing from elsewhere, stand in no frame, and stays in no cache', async () => {
    const { headers, text } = await show(pathOf(await create()));
    const policy = headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(text).not.toMatch(/ style=|<script(?![^>]* src=)|javascript:|https?:\/\//);
    for (const name of [/<link rel="stylesheet" href="([^"]+)"/, /<script type="module" src="([^"]+)"/]) {
      const file = await show(`/pay/${attribute(text, name)}`);
      expect(file.status).toBe(200);
      expect(file.headers.get('cache-control')).toContain('immutable');
      expect(file.text.length).toBeGreaterThan(500);
    }
  });

  test('says when payments cannot be seen at present, so that nobody pays twice because nothing happens', async () => {
    const blind = await makeApi();
    const { json } = await blind.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', expand: ['checkout'] });
    const stream = await openStream(blind.base, null, {}, `${pathOf(json)}/events`);
    await stream.count(1);
    const words = 'Payments cannot be seen at present.';
    expect(stream.events()[0].html).not.toContain(words);
    await blind.sql(`update node_conditions set state = 'down' where currency = 'BTC'`);
    await stream.count(2);
    expect(stream.events()[1].html).toContain(words);
    await blind.sql(
      `update node_conditions set state = 'ready', looked_at = now() - interval '2 minutes' where currency = 'BTC'`,
    );
    expect((await blind.send(pathOf(json), undefined, HTML, 'GET')).text).toContain(words);
    await stream.close();
    await blind.end();
  });

  test('asks for nothing any more when the time is over or the merchant has cancelled', async () => {
    const later = await makeApi();
    const asked = { amount: '25.00', crypto_selected: 'BTC', expand: ['checkout'] };
    const { json: made } = await later.call('/create_transaction', asked);
    const { json: other } = await later.call('/create_transaction', asked);
    await later.call('/cancel_transaction', { transaction_id: other.transaction_id });
    const shown = (of: { checkout: { url: string } }) => later.send(pathOf(of), undefined, HTML, 'GET');
    const cancelled = await shown(other);
    later.advance(15 * 60 - 1);
    expect((await shown(made)).text).toContain('data-screen="pay"');
    later.advance(1);
    const expired = await shown(made);
    expect(expired.text).toContain('data-screen="expired"');
    expect(cancelled.text).toContain('data-screen="cancelled"');
    for (const { text } of [expired, cancelled]) expect(text).not.toMatch(/class="qr"|class="wallet"|data-copy/);
    await later.end();
  });
});

describe('refusals', () => {
  test.each(BAD_TOKENS)('%j is no link: a page for a browser, JSON for others', async (token) => {
    const asPage = await show(`/pay/${token}`);
    expect([asPage.status, asPage.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(asPage.text).toContain('There is no such payment page.');
    const asJson = await show(`/pay/${token}`, { accept: '*/*' });
    expect([asJson.status, asJson.json]).toEqual([404, { error: 'not_found', message: 'There is no such payment page.' }]);
    const events = await show(`/pay/${token}/events`);
    expect([events.status, events.json.error]).toEqual([404, 'not_found']);
  });

  test('other methods are refused with those that the path takes', async () => {
    const path = pathOf(await create());
    for (const [at, allow] of [
      [path, 'GET, HEAD'],
      [`${path}/events`, 'GET'],
    ] as const) {
      const refused = await api.send(at, {});
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, allow]);
    }
    expect((await api.send(path, undefined, {}, 'HEAD')).status).toBe(200);
    expect((await show(`${path}/else`)).status).toBe(404);
  });

  test('an address has its number of pages a minute, and it costs none of its other calls', async () => {
    const limited = await makeApi({ rateLimitScale: 1, rateLimits: { checkout: { perMinute: 2 } } });
    const get = () => limited.send('/pay/zzz', undefined, HTML, 'GET');
    expect([(await get()).status, (await get()).status]).toEqual([404, 404]);
    const refused = await get();
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('content-type')]).toEqual([
      429,
      '30',
      'text/html; charset=utf-8',
    ]);
    expect((await limited.send('/openapi.json', undefined, {}, 'GET')).status).toBe(200);
    await limited.end();
  });

  test('outside the sandbox it is shown over TLS only, and without the wallet of the sandbox', async () => {
    const real = await makeApi({ network: 'regtest', trustedProxies: ['127.0.0.1'] });
    const tls = { 'x-forwarded-proto': 'https' };
    const { json: pair } = await real.send('/auth', { username: 'shop', password: 'correct horse battery' }, tls);
    const asked = { access_token: pair.access_token, amount: '25.00', crypto_selected: 'BTC', expand: ['checkout'] };
    const { json } = await real.send('/create_transaction', asked, tls);
    expect(json.checkout.url).toMatch(/^https:/);
    const path = pathOf(json);
    expect((await real.send(path, undefined, HTML, 'GET')).status).toBe(403);
    const page = await real.send(path, undefined, { ...HTML, ...tls }, 'GET');
    expect(page.status).toBe(200);
    expect(page.text).not.toContain('data-control');
    await real.end();
  });
});

test('a token whose contract is configured no longer cannot be paid, and holds up nobody', async () => {
  const made = await create();
  const other = await create();
  const stream = await follow(pathOf(other));
  const beside = await follow(pathOf(made));
  await Promise.all([stream.count(1), beside.count(1)]);
  await api.sql(`update transactions set currency = 'USDT' where id = $1`, [made.transaction_id]);
  const page = await show(pathOf(made));
  expect(page.status).toBe(200);
  expect(page.text).toContain('cannot be paid at present');
  expect(page.text).not.toMatch(/class="qr"|class="wallet"|data-copy/);
  await api.call('/cancel_transaction', { transaction_id: other.transaction_id });
  await stream.count(2);
  expect(stream.events().at(-1)).toMatchObject({ screen: 'cancelled' });
  await Promise.all([stream.close(), beside.close()]);
});

const follow = (path: string, base = api.base, headers: Record<string, string> = {}) =>
  openStream(base, null, headers, `${path}/events`);

describe('its stream', () => {
  test('tells what is there at once, and the next screen when something has changed', async () => {
    const made = await create();
    const stream = await follow(pathOf(made));
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    await stream.count(1);
    const [first] = stream.events();
    expect(first).toMatchObject({ status: 'started', screen: 'pay', expires_at: made.expires_at, now: api.now() });
    expect(first.html).toContain(`data-copy="${made.wallet_address}"`);
    await api.call('/cancel_transaction', { transaction_id: made.transaction_id });
    await stream.count(2);
    const second = stream.events()[1];
    expect(second).toMatchObject({ status: 'cancelled', screen: 'cancelled' });
    expect(second.html).not.toContain('data-copy');
    await stream.close();
  });

  test('tells the time at once when the clock was set, so that no page counts down to another end', async () => {
    const moved = await makeApi();
    const { json } = await moved.call('/create_transaction', { amount: '5', crypto_selected: 'BTC', expand: ['checkout'] });
    const stream = await follow(pathOf(json), moved.base);
    await stream.count(1);
    moved.advance(600);
    await stream.beaten(1);
    expect(JSON.parse(stream.beats[0]?.data ?? '{}')).toEqual({ now: moved.now() });
    expect(stream.messages.length).toBe(1);
    await stream.close();
    await moved.end();
  });

  test('of one address there are a hundred at once; one that ends makes room', async () => {
    const path = pathOf(await create());
    const open = await Promise.all(Array.from({ length: 100 }, () => follow(path)));
    const refused = await show(`${path}/events`);
    expect([refused.status, refused.json.error, refused.headers.get('retry-after')]).toEqual([429, 'rate_limited', '5']);
    expect((await show(path)).status).toBe(200);
    await open[0]?.close();
    const openedAgain = async () => {
      const stream = await follow(path);
      await stream.close();
      return stream.response.status;
    };
    await expect.poll(openedAgain).toBe(200);
    await Promise.all(open.map((stream) => stream.close()));
  });

  test('when all are taken whoever has fewer gets the oldest of the address that has most', async () => {
    const full = await makeApi({ checkoutLimits: { ofAll: 4, ofOne: 3 }, trustedProxies: ['127.0.0.1'] });
    const { json } = await full.call('/create_transaction', { amount: '5', crypto_selected: 'BTC', expand: ['checkout'] });
    const from = (address: string) => follow(pathOf(json), full.base, { 'x-forwarded-for': address });
    const many = [await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.1')];
    expect((await from('192.0.2.1')).response.status).toBe(429);
    const [one, other] = [await from('192.0.2.2'), await from('192.0.2.3')];
    expect([one.response.status, other.response.status]).toEqual([200, 200]);
    await many[0]?.over();
    for (const stream of [one, other]) await stream.count(1);
    // everybody would have as many as he then
    expect((await from('192.0.2.2')).response.status).toBe(503);
    await Promise.all([...many, one, other].map((stream) => stream.close()));
    await full.end();
  });

  test('ends when the server closes', async () => {
    const other = await makeApi();
    const { json } = await other.call('/create_transaction', { amount: '5', crypto_selected: 'BTC', expand: ['checkout'] });
    const stream = await follow(pathOf(json), other.base);
    await stream.count(1);
    await other.end();
    await stream.over();
  });
});
