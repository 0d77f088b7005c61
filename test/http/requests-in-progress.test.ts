// What clients may have in progress at once: requests that are sent without waiting for answers, on one connection and on many.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { limitRequests } from '../../src/http/requests-in-progress.ts';
import { eventually } from '../support/service.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const LIMITS = { ofOne: 8, ofAll: 20 };
const GET = 'GET /readyz HTTP/1.1\r\n\r\n';
/** The same for the API, which wants a host. */
const PROBE = 'GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n';
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function clientOf(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  ends.push(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** A server that answers when the test says so, with the path (and the length of the body) of the request. */
async function slowServer() {
  const waiting: [IncomingMessage, ServerResponse][] = [];
  const seen: string[] = [];
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    seen.push(request.url ?? '');
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
    });
    request.on('end', () => response.setHeader('x-body', length));
    waiting.push([request, response]);
  });
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  const inProgress = limitRequests(server, LIMITS);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const answer = (count: number): void => {
    for (const [request, response] of waiting.splice(0, count)) response.end(request.url);
  };
  return { waiting, seen, answer, inProgress, client: () => clientOf((server.address() as AddressInfo).port) };
}

function textOf(socket: Socket): () => string {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return () => text;
}

/** Some turns of the event loop, and time for what the systems have under way. */
const settle = () => pause(150);

describe('requests of one connection that do not wait for answers', () => {
  test.each([
    ['without a body', (n: number) => `GET /${n} HTTP/1.1\r\n\r\n`],
    ['with a length', (n: number) => `POST /${n} HTTP/1.1\r\ncontent-length: 9\r\n\r\n{"n":"e"}`],
    [
      'in chunks',
      (n: number) => `POST /${n} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n5\r\nabcde\r\n0\r\n\r\n`,
    ],
  ])('are few at a time, and all are answered in their order: %s', async (_name, request) => {
    const { waiting, seen, answer, client } = await slowServer();
    const socket = await client();
    const text = textOf(socket);
    const count = 3_000;
    socket.write(Array.from({ length: count }, (_, n) => request(n)).join(''));
    await eventually('the first are there', () => waiting.length >= LIMITS.ofOne);
    await settle();
    expect(waiting.length).toBe(LIMITS.ofOne);
    while (seen.length < count) {
      answer(3);
      await new Promise(setImmediate);
      expect(waiting.length).toBeLessThanOrEqual(LIMITS.ofOne);
    }
    answer(count);
    await eventually('all are answered', () => text().match(/HTTP\/1\.1 200/g)?.length === count);
    expect(seen).toEqual(Array.from({ length: count }, (_, n) => `/${n}`));
    expect(new Set([...text().matchAll(/x-body: (\d+)/g)].map(([, length]) => length)).size).toBe(1);
  });

  test('however they are cut into packets', async () => {
    const { waiting, seen, answer, client } = await slowServer();
    const socket = await client();
    socket.setNoDelay(true);
    const text = textOf(socket);
    const count = 40;
    const body = 'x'.repeat(50);
    const bytes = Array.from(
      { length: count },
      (_, n) => `POST /${n} HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    ).join('');
    for (let at = 0; at < bytes.length; at += 37) {
      socket.write(bytes.slice(at, at + 37));
      await new Promise(setImmediate);
    }
    await eventually('the first are there', () => waiting.length >= LIMITS.ofOne);
    while (seen.length < count) {
      expect(waiting.length).toBeLessThanOrEqual(LIMITS.ofOne + 1);
      answer(1);
      await new Promise(setImmediate);
    }
    answer(count);
    await eventually('all are answered', () => text().match(/x-body: 50/g)?.length === count);
  });

  test('are answered when the client has closed its side behind them', async () => {
    const { answer, seen, client } = await slowServer();
    const socket = await client();
    const text = textOf(socket);
    socket.end(Array.from({ length: 50 }, (_, n) => `GET /${n} HTTP/1.1\r\n\r\n`).join(''));
    while (seen.length < 50) {
      answer(8);
      await new Promise(setImmediate);
    }
    answer(8);
    await eventually('all are answered', () => text().match(/HTTP\/1\.1 200/g)?.length === 50);
    expect(seen).toHaveLength(50);
  });

  test('a large body arrives whole beside others, and is never what stops the connection', async () => {
    const { waiting, answer, client } = await slowServer();
    const socket = await client();
    const text = textOf(socket);
    const large = `POST /large HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n${'\r\n\r\n'.repeat(250_000)}`;
    socket.write(`${GET.repeat(LIMITS.ofOne - 1)}${large}${GET.repeat(20)}`);
    await eventually('they are there', () => waiting.length === LIMITS.ofOne);
    await eventually('it is whole', () => waiting.at(-1)?.[0].complete === true);
    await settle();
    expect(waiting.length).toBe(LIMITS.ofOne);
    while (waiting.length > 0) {
      answer(8);
      await settle();
    }
    await eventually('all are answered', () => text().match(/HTTP\/1\.1 200/g)?.length === LIMITS.ofOne + 20);
    expect(text()).toContain('x-body: 1000000');
  });
});

test('when many are in progress everywhere, a connection that has one is refused another; what is gone counts no more', async () => {
  const { waiting, inProgress, client } = await slowServer();
  const sockets = await Promise.all(Array.from({ length: 4 }, client));
  for (const socket of sockets) socket.write(GET.repeat(6));
  await eventually('all are there', () => waiting.length === 24);
  const alone = await client();
  alone.write(GET);
  await eventually('one more', () => waiting.length === 25);
  expect(inProgress.isTooMany(waiting.at(-1)![0].socket)).toBe(false);
  expect(inProgress.isTooMany(waiting[0]![0].socket)).toBe(true);
  for (const socket of sockets) socket.resetAndDestroy();
  alone.write(GET.repeat(3));
  await eventually('three more', () => waiting.length === 28);
  await eventually('the others are gone', () => !inProgress.isTooMany(waiting.at(-1)![0].socket));
});

describe('the API', () => {
  let api: ApiServer;
  beforeAll(async () => {
    api = await makeApi({ requestLimits: { ofOne: 8, ofAll: 4 } });
  });
  afterAll(() => api.end());

  test('a flood of probes on one connection keeps no other out, and is refused where much is in progress', async () => {
    const port = Number(new URL(api.base).port);
    const flooding = await Promise.all([clientOf(port), clientOf(port)]);
    const texts = flooding.map(textOf);
    for (const socket of flooding) socket.write(PROBE.repeat(20_000));
    const started = performance.now();
    for (let n = 0; n < 10; n++) expect((await api.send('/healthz', undefined, {}, 'GET')).status).toBe(200);
    expect(performance.now() - started).toBeLessThan(2_000);
    const refused = await eventually('one is refused', () =>
      texts.map((text) => /HTTP\/1\.1 503[^{]*\{[^}]*\}/.exec(text())?.[0]).find((one) => one !== undefined),
    );
    expect(refused).toMatch(/retry-after: \d+/i);
    expect(refused).toMatch(/ratelimit-policy: /i);
    expect(refused).toContain('"error":"overloaded"');
  });
});
