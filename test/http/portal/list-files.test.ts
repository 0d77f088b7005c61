// What merchants download: every item that the page shows, for a spreadsheet, and whole or not at all.
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { csvLine } from '../../../src/http/pages/csv.ts';
import { api, payoutCallsForAll, waiting } from '../payout-calls.ts';
import { openBrowser, signedInBrowser, words } from './browser.ts';

payoutCallsForAll();

type Browser = Awaited<ReturnType<typeof signedInBrowser>>;
const create = async (more: object = {}, username = 'shop') =>
  (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', ...more }, {}, username)).json;
/** Together more than any buffer between the service and a client who does not read. */
const MANY = 1_000;
const LONG = 'x'.repeat(10_000);
/** Rows like this transaction, each a second older than the one before. */
const copies = (id: string, to: number, { from = 1, ...more }: { readonly from?: number; readonly label?: string } = {}) =>
  api.sql(
    `insert into transactions
     select (jsonb_populate_record(t, $3::jsonb || jsonb_build_object('id', 'txn_' || lpad(n::text, 22, '0'), 'script', null, 'address_index', null,
              'created_at', t.created_at - n * interval '1 second'))).*
       from transactions t, generate_series($4::int, $2::int) n where t.id = $1`,
    [id, to, JSON.stringify(more), from],
  );

/** The lines of a file by their heads, as a program reads them that knows the standard. Its first bytes say that it is UTF-8, and are gone here. */
function rowsOf(text: string): readonly Readonly<Record<string, string>>[] {
  const cells: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    cells.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === '\r\n') cells.push([]);
  }
  const [heads = [], ...rows] = cells.slice(0, -1);
  return rows.map((row) => Object.fromEntries(heads.map((head, n) => [head, row[n] ?? 'MISSING'])));
}
async function download(browser: Browser, path: string) {
  const { status, headers, text } = await browser.get(path);
  expect(status, words(text)).toBe(200);
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
  return rowsOf(text);
}

describe('payments', () => {
  test('all that the filter matches are in the file, in the order of the list and in its words, and count as one call', async () => {
    const first = await create({ label: 'order-1' });
    await copies(first.transaction_id, 250, { label: 'older' });
    const browser = await signedInBrowser(api);
    const before = await api.call('/list_transactions', { limit: 100 });
    const rows = await download(browser, '/transactions.csv');
    const listed = [...before.json.data];
    while (listed.length < 251)
      listed.push(
        ...(await api.call('/list_transactions', { limit: 100, starting_after: listed.at(-1).transaction_id })).json.data,
      );
    expect(rows.map((row) => row.transaction_id)).toEqual(listed.map((one) => one.transaction_id));
    for (const name of ['created_at', 'status', 'label', 'usd_amount', 'exchange_rate', 'crypto_amount', 'wallet_address'])
      expect(rows.map((row) => row[name])).toEqual(listed.map((one) => String(one[name])));
    expect(rows[0]?.confirmed_at).toBe('');
    const left = ({ headers }: { readonly headers: Headers }) => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
    const after = await api.call('/list_transactions', { limit: 1 });
    // the file, two more pages of the list, and this one; what has been given back meanwhile is not counted
    expect(left(before) - left(after)).toBeLessThanOrEqual(4);
  });

  test('the page leads to the file of what it shows', async () => {
    const made = await create({ label: 'a & b' });
    const browser = await signedInBrowser(api);
    const [newest] = (await api.call('/list_transactions', { limit: 1 })).json.data;
    const day = newest.created_at.slice(0, 10);
    const { text } = await browser.get(`/transactions?label=a+%26+b&status=started&from=${day}&to=${day}`);
    const path = /href="([^"]+)">Download all as CSV/.exec(text)?.[1]?.replaceAll('&amp;', '&') as string;
    expect(path).toBe(`/transactions.csv?status=started&label=a+%26+b&from=${day}&to=${day}`);
    expect(text).toContain(`name="from" type="date" value="${day}"`);
    expect((await download(browser, path)).map((row) => row.transaction_id)).toEqual([made.transaction_id]);
    expect((await browser.get('/transactions?label=nobody')).text).not.toContain('Download all');
  });

  test('days count from their beginning to their end in UTC, and what is no day is refused with what is accepted', async () => {
    const made = await create({ label: 'of a day' });
    await api.sql(`update transactions set created_at = '2026-02-28T23:59:59.999Z' where id = $1`, [made.transaction_id]);
    const browser = await signedInBrowser(api);
    const found = async (days: string) => (await download(browser, `/transactions.csv?label=of+a+day&${days}`)).length;
    expect(await found('from=2026-02-28&to=2026-02-28')).toBe(1);
    expect(await found('to=2026-02-27')).toBe(0);
    expect(await found('from=2026-03-01')).toBe(0);
    for (const days of ['from=2026-02-30', 'to=yesterday', 'to=%2B275760-09-13', 'to=9999-12-31T', 'from=-000001-01-01']) {
      const refused = await browser.get(`/transactions.csv?${days}`);
      expect(refused.status).toBe(400);
      expect(refused.headers.get('content-type')).toContain('text/html');
      expect(words(refused.text)).toContain('must be a UTC time such as');
    }
  });

  test('what a spreadsheet would take for a formula is text, and quotes, commas and lines stay what they are', async () => {
    const labels = ['=1+1', '+1', '-1+1', '@sum', '-5', 'a "b", c', 'Müller € ü'];
    for (const label of labels) await create({ label, amount: '7.00' });
    const browser = await signedInBrowser(api);
    const file = await browser.get('/transactions.csv');
    const shown = rowsOf(file.text).flatMap(({ label, usd_amount: amount }) => (amount === '7.00' ? [label] : []));
    expect(new Set(shown)).toEqual(new Set(["'=1+1", "'+1", "'-1+1", "'@sum", '-5', 'a "b", c', 'Müller € ü']));
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; filename="payments-\d{4}-\d\d-\d\d\.csv"$/);
    expect(file.headers.get('cache-control')).toBe('no-store');
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test.each([
    ['  =1+1', "'  =1+1"],
    ['\u00a0=1+1', "'\u00a0=1+1"],
    ['\u200e\u2066=1+1', "'\u200e\u2066=1+1"],
    ['\ufeff@sum', "'\ufeff@sum"],
    ['\u2028=1+1', "'\u2028=1+1"],
    ['＝1+1', "'＝1+1"],
    ['＋1', "'＋1"],
    ['－1+1', "'－1+1"],
    ['＠sum', "'＠sum"],
    ['\u22121+1', "'\u22121+1"],
    ['"=1+1', '\'"=1+1'],
    // where a comma is part of numbers, spreadsheets take a semicolon for the end of a cell, and quotes before one for none
    ['a;=1+1;', "a;'=1+1;"],
    ['a; "=1+1";b', 'a;\' "=1+1";b'],
    ['a=1', 'a=1'],
    ['order-1; a-b', 'order-1; a-b'],
  ])('a spreadsheet of any country takes %j for text', async (label, shown) => {
    expect(csvLine([label, 'end'])).toBe(`${/[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown},end\r\n`);
  });

  test("are the merchant's own, and nobody's who is not signed in or may not read", async () => {
    const own = await create({ label: 'mine' }, 'other');
    const rows = await download(await signedInBrowser(api, 'other'), '/transactions.csv');
    expect(rows.map((row) => row.transaction_id)).toEqual([own.transaction_id]);
    const stranger = await openBrowser(api.base).getOnce('/transactions.csv');
    expect([stranger.status, stranger.headers.get('location')]).toEqual([303, '/?next=%2Ftransactions']);
    const refused = await (await signedInBrowser(api, 'only.payments')).get('/transactions.csv');
    expect([refused.status, words(refused.text)]).toEqual([403, expect.stringContaining('scope')]);
  });
});

describe('a file', () => {
  test('of payouts and of the entries of a balance says what they are, in numbers that have their sign', async () => {
    const browser = await signedInBrowser(api);
    const id = await waiting();
    expect((await download(browser, '/payouts.csv?status=pending')).find((row) => row.id === id)).toMatchObject({
      ...{ method: 'bitcoin', amount: '0.01', amount_currency: 'BTC', fee_currency: 'BTC', txid: '', completed_at: '' },
      held_reason: 'receivable',
    });
    const [newest] = await download(browser, '/balances/BTC/entries.csv');
    expect(newest).toMatchObject({
      kind: 'payout_hold',
      currency: 'BTC',
      amount: '-0.01004000',
      payout_id: id,
      transaction_id: '',
    });
    for (const path of ['/payouts', '/balances/BTC'])
      expect((await browser.get(path)).text).toMatch(new RegExp(`href="${path}(/entries)?\\.csv">Download all as CSV`));
  });

  test('of no currency is not found, and takes no other method', async () => {
    const browser = await signedInBrowser(api);
    expect(await download(browser, '/balances/USDT/entries.csv')).toEqual([]);
    expect((await browser.get('/balances/XYZ/entries.csv')).status).toBe(404);
    const { status, headers } = await api.send('/payouts.csv', undefined, {}, 'DELETE');
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  /** A download of more than any buffer takes, by somebody who does not read it; how it ends once he does. */
  async function unread(browser: Browser, base: string) {
    const asked = httpRequest(`${base}/transactions.csv`, { headers: { cookie: browser.cookie() as string } });
    asked.once('error', () => undefined).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    return (): Promise<string> => {
      const ended = new Promise<string>((resolve) => {
        answer.once('end', () => resolve('whole'));
        answer.once('error', () => resolve('broken off'));
      });
      answer.resume();
      return ended;
    };
  }

  test('that breaks off is no whole one for HTTP/1.0 either, where the end of the connection is the end of the file', async () => {
    const made = await create();
    await copies(made.transaction_id, 2_000 + MANY, { from: 2_001, label: 'y'.repeat(LONG.length) });
    const browser = await signedInBrowser(api);
    const { port, hostname } = new URL(api.base);
    const socket = connect(Number(port), hostname);
    socket.write(`GET /transactions.csv HTTP/1.0\r\ncookie: ${browser.cookie()}\r\n\r\n`);
    await once(socket, 'readable');
    const ended = new Promise<string>((resolve) => {
      socket.once('end', () => resolve('whole')).once('error', () => resolve('broken off'));
    });
    const page = await browser.get('/');
    const token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] as string;
    await browser.postOnce('/sign-out', { form_token: token });
    socket.resume();
    expect(await ended).toBe('broken off');
  });

  test('breaks off where its user was signed out meanwhile or the server closes, and a merchant has one at a time', async () => {
    const made = await create();
    await copies(made.transaction_id, 1_000 + MANY, { from: 1_001, label: LONG });
    const browser = await signedInBrowser(api);
    const read = await unread(browser, api.base);
    const second = await browser.get('/transactions.csv');
    expect([second.status, words(second.text)]).toEqual([429, expect.stringContaining('Another file is being downloaded')]);
    const page = await browser.get('/');
    const token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] as string;
    await browser.postOnce('/sign-out', { form_token: token });
    expect(await read()).toBe('broken off');
    // and the next one is not kept out
    const again = await signedInBrowser(api);
    expect((await download(again, '/transactions.csv')).filter(({ label }) => label === LONG)).toHaveLength(MANY);
    const cut = await unread(again, api.base);
    await api.close();
    expect(await cut()).toBe('broken off');
  });
});
