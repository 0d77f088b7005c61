// What the server does around the operations: unknown paths, broken HTTP, slow and oversized bodies, TLS and proxies, the sandbox's controls,
// closing while somebody waits.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/http/read-body.ts';
import { type ApiServer, makeApi, speak } from './api-server.ts';

const controls: { control: string; body: JsonObject }[] = [];
let api: ApiServer;
beforeAll(async () => {
  api = await makeApi({
    async sandbox(control, body) {
      controls.push({ control, body });
      if (control === 'gone') throw new Error('no sandbox');
      return {
        httpStatus: control === 'pay' ? 200 : 404,
        json: JSON.stringify(control === 'pay' ? { txid: 'ab' } : { error: 'not_found', message: 'No.' }),
      };
    },
  });
});
afterAll(() => api.end());

describe('paths and methods', () => {
  test('what is not there is 404 as JSON, whatever the method and the body', async () => {
    const paths = [
      '/nope',
      '/auth/',
      '/AUTH',
      '/v1',
      '/v2/auth',
      '/v1/healthz',
      '/%',
      '/%zz',
      '/auth%00',
      '/a?b=<script>',
      '/../etc/passwd',
    ];
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const body = method === 'POST' ? 'x'.repeat(100_000) : undefined;
        const reply = await api.send(path, body, { 'content-type': 'text/html' }, method);
        expect([path, method, reply.status, reply.json]).toEqual([
          path,
          method,
          404,
          { error: 'not_found', message: 'There is nothing at this path.' },
        ]);
        expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(reply.headers.get('x-request-id')).toMatch(/^req_/);
      }
    }
  });
  test('405 names the method that a path takes', async () => {
    for (const [path, allow] of [
      ['/healthz', 'GET, HEAD'],
      ['/readyz', 'GET, HEAD'],
      ['/openapi.json', 'GET, HEAD'],
      ['/sandbox/pay', 'POST'],
      ['/v1/auth?x=1', 'POST'],
    ] as const) {
      const reply = await api.send(path, allow === 'POST' ? undefined : {}, {}, allow === 'POST' ? 'GET' : 'POST');
      expect([path, reply.status, reply.json.error, reply.headers.get('allow')]).toEqual([
        path,
        405,
        'method_not_allowed',
        allow,
      ]);
    }
    expect((await api.send('/healthz', undefined, {}, 'HEAD')).status).toBe(200);
  });
  test('no two answers have the same X-Request-Id', async () => {
    const replies = await Promise.all(Array.from({ length: 50 }, () => api.send('/get_rates', {})));
    expect(new Set(replies.map(({ headers }) => headers.get('x-request-id'))).size).toBe(50);
  });
});

const LIMIT_HEADERS = ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

describe('on the socket', () => {
  test('what is not HTTP is answered 400 as JSON', async () => {
    for (const bytes of [
      'NONSENSE\r\n\r\n',
      'POST /auth HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n',
      'POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n',
      'BREW / HTTP/1.1\r\nHost: x\r\n\r\n',
      `GET / HTTP/1.1\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    ]) {
      const answer = await speak(api.base, bytes);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('\r\nx-request-id: req_');
      for (const name of LIMIT_HEADERS) expect(answer).toContain(`\r\n${name}: `);
      expect(JSON.parse(answer.split('\r\n\r\n')[1] as string).error).toBe('invalid_request');
    }
  });
  test('bytes after a whole request are answered after it, once', async () => {
    const access_token = await api.tokenOf('shop');
    const body = JSON.stringify({ access_token, amount: '5', crypto_selected: 'BTC' });
    const head = `POST /create_transaction HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    for (const stray of ['}', ' ', 'no HTTP\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n']) {
      const answers = await speak(api.base, `${head}${body}${stray}`, 2);
      expect([stray, answers.match(/HTTP\/1\.1 \d+/g)]).toEqual([stray, ['HTTP/1.1 200', 'HTTP/1.1 400']]);
      expect(answers.indexOf('"transaction_id"')).toBeLessThan(answers.indexOf('not a well-formed'));
    }
    const two = await speak(api.base, `${head}${body}${head}${body}garbage\r\n\r\n`, 3);
    expect(two.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test('CONNECT is answered 405, and the connection ends', async () => {
    const answer = await speak(api.base, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    for (const name of [...LIMIT_HEADERS, 'allow', 'x-request-id']) expect(answer).toContain(`\r\n${name}: `);
    expect(answer).toContain('"method_not_allowed"');
  });
  test('what is not HTTP is counted by address too', async () => {
    const server = await makeApi({ rateLimitScale: 1 });
    for (let n = 0; n < 60; n++)
      expect(await speak(server.base, 'NONSENSE\r\n\r\n')).toContain(`x-ratelimit-remaining: ${59 - n}`);
    const refused = await speak(server.base, 'NONSENSE\r\n\r\n');
    expect(refused).toMatch(/^HTTP\/1\.1 429 /);
    expect(refused).toContain('\r\nretry-after: 1\r\n');
    await server.end();
  });
  test('a header full of white space costs no more than any other', async () => {
    const call = async (authorization: string) => {
      const startedMs = performance.now();
      for (let n = 0; n < 20; n++) {
        const reply = await speak(
          api.base,
          `POST /get_settings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nAuthorization: ${authorization}\r\n\r\n{}`,
        );
        expect(reply).toMatch(/"(invalid_token|rate_limited)"/);
      }
      return performance.now() - startedMs;
    };
    const plain = await call('Bearer x');
    expect(await call(`Bearer${' '.repeat(15_000)}x y`)).toBeLessThan(10 * plain + 200);
  });

  test('a client that sends 20 MB before it reads gets to read the refusal', async () => {
    const socket = connect(Number(new URL(api.base).port), '127.0.0.1');
    const size = 20 * 1024 * 1024;
    socket.write(`POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`);
    socket.pause();
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.write(Buffer.alloc(size, 'x'), () => resolve());
    });
    const answered = once(socket, 'data');
    socket.resume();
    const [answer] = (await answered) as [Buffer];
    expect(String(answer)).toContain('"payload_too_large"');
    socket.destroy();
  });
  test('a body that says it is too large is refused before it is sent; one that does not, when it is', async () => {
    const head = 'POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
    expect(await speak(api.base, `${head}Content-Length: 65537\r\n\r\n`)).toContain('"payload_too_large"');
    const chunk = `2000\r\n${'x'.repeat(8192)}\r\n`;
    expect(await speak(api.base, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(9)}`)).toContain('"payload_too_large"');
  });
  test('an expectation we do not know, and 100-continue, are served', async () => {
    const head = 'POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n';
    expect(await speak(api.base, `${head}Expect: nonsense\r\n\r\n{}`)).toContain('"missing_field"');
  });
  test('a body in many pieces is one body', async () => {
    const socket = connect(Number(new URL(api.base).port), '127.0.0.1');
    const answered = once(socket, 'data');
    const body = JSON.stringify({ username: 'nobody', password: 'ä'.repeat(50) });
    socket.write(
      `POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
    );
    for (const byte of Buffer.from(body)) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(String((await answered)[0])).toContain('"invalid_credentials"');
    socket.destroy();
  });
});

test('clients that go away at any point of a call do no harm', async () => {
  const token = await api.tokenOf('shop');
  const body = JSON.stringify({ access_token: token, amount: '5', crypto_selected: 'BTC' });
  const call = `POST /create_transaction HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  for (let cut = 1; cut <= call.length; cut += 37) {
    for (const how of ['end', 'resetAndDestroy'] as const) {
      const socket = connect(Number(new URL(api.base).port), '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(call.slice(0, cut));
      socket[how]();
    }
  }
  expect((await api.call('/get_rates', {})).status).toBe(200);
  expect(api.bugs.filter((bug) => (bug as Error).message !== 'no sandbox')).toEqual([]);
});

describe('TLS and proxies', () => {
  test('outside the sandbox only a trusted proxy’s header makes a call secure; probes need none', async () => {
    const open = await makeApi({ network: 'regtest' });
    const proxied = await makeApi({ network: 'regtest', trustedProxies: ['127.0.0.0/8'] });
    const https = { 'x-forwarded-proto': 'https' };
    for (const [server, headers, code] of [
      [open, {}, 'https_required'],
      [open, https, 'https_required'],
      [proxied, {}, 'https_required'],
      [proxied, { 'x-forwarded-proto': 'http' }, 'https_required'],
      [proxied, https, 'missing_field'],
      [proxied, { 'x-forwarded-proto': 'HTTPS' }, 'missing_field'],
    ] as const) {
      expect((await server.send('/auth', {}, headers)).json.error).toBe(code);
      expect((await server.send('/openapi.json', undefined, headers, 'GET')).status).toBe(code === 'missing_field' ? 200 : 403);
      expect((await server.send('/healthz', undefined, headers, 'GET')).status).toBe(200);
      // the controls do not exist here, whatever the call came over
      expect((await server.send('/sandbox/pay', {}, headers)).status).toBe(404);
    }
    await open.end();
    await proxied.end();
  });
});

test('whoever is exempt from limits is so with every method and at every control', async () => {
  for (const [path, method] of [
    ['/healthz', 'POST'],
    ['/readyz', 'DELETE'],
    ['/sandbox/pay', 'GET'],
    ['/sandbox/a/b', 'POST'],
  ] as const) {
    const reply = await api.send(path, undefined, {}, method);
    expect([reply.status, reply.headers.get('x-ratelimit-limit')]).toEqual([path === '/sandbox/a/b' ? 404 : 405, null]);
    expect(reply.headers.get('x-request-id')).not.toBeNull();
  }
});

describe('the controls of the sandbox', () => {
  test('are handed on with their body, and their answer comes back as it is', async () => {
    const paid = await api.send('/sandbox/pay', { transaction_id: 'txn_1' });
    expect([paid.status, paid.json]).toEqual([200, { txid: 'ab' }]);
    expect(controls.at(-1)).toEqual({ control: 'pay', body: { transaction_id: 'txn_1' } });
    expect((await api.send('/sandbox/nope', {})).status).toBe(404);
    expect(paid.headers.get('x-ratelimit-limit')).toBeNull();
  });
  test('take JSON of at most 64 KiB only, and never answer 500', async () => {
    expect((await api.send('/sandbox/pay', '{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await api.send('/sandbox/pay', 'x'.repeat(70_000))).status).toBe(413);
    for (const body of ['', '[', 'null', '{"a":[[[[[]]]]]}', '{"__proto__":1}'])
      expect((await api.send('/sandbox/pay', body)).status).toBe(400);
    expect((await api.send('/sandbox/gone', {})).status).toBe(503);
  });
  test('do not exist where there is no sandbox', async () => {
    const plain = await makeApi();
    expect((await plain.send('/sandbox/pay', {})).json.error).toBe('not_found');
    await plain.end();
  });
});

test('closing answers who waits, and ends', async () => {
  const server = await makeApi();
  const { json } = await server.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
  const waiting = server.call('/check_transaction', { transaction_id: json.transaction_id, wait_seconds: 30 });
  await server.call('/check_transaction', { transaction_id: json.transaction_id });
  await pause(50);
  const started = performance.now();
  await server.end();
  expect((await waiting).json.status).toBe('started');
  expect(performance.now() - started).toBeLessThan(5000);
});
