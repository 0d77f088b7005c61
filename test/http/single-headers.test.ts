// What is refused of a request before it is known what it asks: its version, and headers of which it has one at most.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, makeApi, speak } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('HTTP/1.1 wants one Host, HTTP/1.0 none', async () => {
  for (const [version, hosts, status] of [
    ['1.1', '', 400],
    ['1.1', 'host: x\r\nHost: y\r\n', 400],
    ['1.1', 'HOST: x\r\n', 200],
    ['1.0', '', 200],
    ['1.0', 'Host: x\r\nHost: x\r\n', 400],
  ] as const) {
    const answer = await speak(api.base, `GET /healthz HTTP/${version}\r\n${hosts}\r\n`);
    expect([version, hosts, answer.slice(9, 12)]).toEqual([version, hosts, String(status)]);
    if (status !== 400) continue;
    expect(answer).toContain('\r\nx-request-id: ');
    // nobody's probes use up what their address has left
    expect(answer).not.toContain('ratelimit');
    const message = 'The request must have exactly one Host header.';
    expect(JSON.parse(answer.split('\r\n\r\n')[1] as string)).toEqual({ error: 'invalid_request', message });
  }
});
test('a request line of another version than HTTP/1.1 or HTTP/1.0 is refused: its rules are others', async () => {
  for (const version of ['2.0', '0.9']) {
    const answer = await speak(api.base, `GET /healthz HTTP/${version}\r\nhost: x\r\n\r\n`);
    expect([version, answer.slice(0, 12)]).toEqual([version, 'HTTP/1.1 400']);
    const message = 'The request must be HTTP/1.1 or HTTP/1.0.';
    expect(JSON.parse(answer.split('\r\n\r\n')[1] as string)).toEqual({ error: 'invalid_request', message });
  }
});
test('a call without Host is counted by address where its path is', async () => {
  const inSandbox = await makeApi({ sandbox: async () => ({ httpStatus: 200, json: '{}' }) });
  for (const [path, isCounted] of [
    ['/openapi.json', true],
    ['/nothing', true],
    ['/readyz?x=1', false],
    ['/%68ealthz', false],
    ['/sandbox/mine', false],
    ['/sandbox/nothing', false],
  ] as const) {
    const answer = await speak(inSandbox.base, `POST ${path} HTTP/1.1\r\ncontent-length: 0\r\n\r\n`);
    expect([path, answer.slice(9, 12), answer.includes('\r\nratelimit: ')]).toEqual([path, '400', isCounted]);
  }
  await inSandbox.end();
  // elsewhere there are no controls
  expect(await speak(api.base, 'POST /sandbox/mine HTTP/1.1\r\n\r\n')).toContain('\r\nratelimit: ');
});

test.each([
  ['/create_transaction', 'Authorization', 'Bearer x'],
  ['/auth_refresh', 'Authorization', 'Bearer x'],
  ['/create_transaction', 'Idempotency-Key', 'k'],
  ['/v1/request_payout', 'Idempotency-Key', 'k'],
  // where they say nothing too
  ['/get_rates', 'Idempotency-Key', 'k'],
  ['/auth', 'Authorization', 'Bearer x'],
  ['/stream_events', 'Last-Event-ID', '0'],
])('%s with two headers %s is refused, also where they are equal, and nothing happens', async (path, name, value) => {
  const inBody = name === 'Authorization' ? {} : { access_token: await api.tokenOf('shop') };
  const payout = { method: 'bitcoin', destination: 'bcrt1qxqknr7pduh8wy5qq30dp6fhd3tph6l6n0y3w8f' };
  const body = JSON.stringify({ ...inBody, amount: '5', crypto_selected: 'BTC', ...(path.includes('payout') ? payout : {}) });
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  const before = await api.sql('select count(*) from transactions');
  for (const second of [value, `${value}2`]) {
    const answer = await speak(api.base, `${head}${name}: ${value}\r\n${name.toLowerCase()}: ${second}\r\n\r\n${body}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    const message = `The ${name} header was sent more than once.`;
    expect(JSON.parse(answer.split('\r\n\r\n')[1] as string)).toEqual({ error: 'invalid_request', message });
  }
  expect(await api.sql('select count(*) from transactions')).toEqual(before);
});
