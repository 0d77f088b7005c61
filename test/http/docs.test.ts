// The reference for people says what the OpenAPI document says: every operation with its fields and refusals.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, makeApi } from './api-server.ts';

let api: ApiServer;
let page: string;
beforeAll(async () => {
  api = await makeApi({ sandbox: async () => ({ httpStatus: 200, json: '{}' }) });
  page = (await api.send('/docs', undefined, {}, 'GET')).text;
});
afterAll(() => api.end());

/** The part of the page about a path. */
function articleOf(path: string): string {
  const [, after = ''] = page.split(`<article id="${path.slice(1).replaceAll('/', '-')}">`);
  return after.split('</article>')[0] as string;
}
const plain = (text: string): string =>
  text
    .replace(/<[^>]+>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

test('every operation stands there with its fields, its refusals and a call that can be pasted', async () => {
  const { json } = await api.send('/openapi.json', undefined, {}, 'GET');
  const paths = Object.keys(json.paths);
  expect(paths.length).toBeGreaterThan(30);
  for (const path of paths) {
    const operation = json.paths[path].post ?? json.paths[path].get;
    const article = articleOf(path);
    const text = plain(article);
    expect(text).toContain(operation.summary);
    expect(text).toContain(`curl -s ${api.base}${path}`);
    const name = operation.requestBody?.content['application/json'].schema.$ref?.split('/').at(-1);
    for (const field of Object.keys(json.components.schemas[name]?.properties ?? {}))
      expect(article).toContain(`<td><code>${field}</code></td>`);
    for (const [status, response] of Object.entries<{ content?: Record<string, { examples?: object }> }>(operation.responses)) {
      if (status === '200') continue;
      for (const code of Object.keys(response.content?.['application/json']?.examples ?? {}))
        expect(article).toContain(`<td>${status}</td><td><code>${code}</code></td>`);
    }
  }
});

test('every link of its list leads to a place on it, each once', () => {
  const links = [...page.matchAll(/<a href="#([^"]+)"/g)].map(([, to]) => to as string);
  const places = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string);
  expect(links.length).toBeGreaterThan(30);
  expect(new Set(places).size).toBe(places.length);
  expect(links.toSorted()).toEqual(places.toSorted());
});

test('shows fields of objects in an answer by their whole name', () => {
  expect(articleOf('/check_payout')).toContain('<td><code>payout.status</code></td>');
  expect(articleOf('/list_transactions')).toContain('<td><code>data[].transaction_id</code></td>');
});

test('loads nothing from elsewhere, and its style may be kept', async () => {
  const { headers } = await api.send('/docs', undefined, {}, 'GET');
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(page).not.toMatch(/<script|<img| style=|src=/);
  const style = await api.send(`/${/<link rel="stylesheet" href="([^"]+)"/.exec(page)?.[1]}`, undefined, {}, 'GET');
  expect([style.status, style.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
  expect(style.headers.get('cache-control')).toContain('immutable');
});

test('is counted like every call without a token, and takes no other method', async () => {
  const limited = await makeApi({ rateLimitScale: 1, rateLimits: { anonymous: { perMinute: 1 } } });
  expect((await limited.send('/docs', undefined, {}, 'GET')).status).toBe(200);
  expect((await limited.send('/openapi.json', undefined, {}, 'GET')).status).toBe(429);
  await limited.end();
  const refused = await api.send('/docs', {});
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
