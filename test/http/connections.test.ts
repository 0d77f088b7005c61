// Connections end, whatever their client does (behaviour §1): slow writers, clients that never read, half-closed and idle connections, and
// so many of one client that others could not get in. The times are a twentieth of the real ones, except in one test.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { CONNECTION_LIMITS } from '../../src/http/connections.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const FAST = { requestMs: 1_500, takenMs: 1_500, idleMs: 1_500, lingerMs: 150, lookMs: 50, most: 30 };
/** Within the 30 s and the 5 s of behaviour §1, in these times. */
const ENDED_MS = FAST.requestMs + 250;
const HEAD = 'POST /check_transaction HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi({ connectionLimits: FAST });
});
afterAll(() => api.end());

const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

/** A client that leaves its side open, whatever the server does, and reads only when asked to. */
async function client(server = api, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(server.base);
  const local = from === undefined ? {} : { localAddress: from };
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, ...local });
  socket.on('error', () => undefined);
  opened.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Sends a little more each time until the connection is gone. */
async function drip(socket: Socket, bytes: string, everyMs: number): Promise<void> {
  while (!socket.destroyed) {
    socket.write(bytes);
    await pause(everyMs);
  }
}

/** How many connections the server still has. */
const held = (server = api): Promise<number> =>
  new Promise((resolve, reject) =>
    server.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );

async function untilHeld(count: number, withinMs: number, server = api): Promise<number> {
  const start = performance.now();
  while ((await held(server)) > count && performance.now() - start < withinMs) await pause(20);
  expect(await held(server)).toBeLessThanOrEqual(count);
  return performance.now() - start;
}

/** Everything that came, once the connection has ended. */
function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    for (const end of ['end', 'close']) socket.once(end, () => resolve(text));
    socket.resume();
  });
}

const post = (path: string, body: object): string => {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};

/** What a slow writer may send, and how it goes on. */
const SLOW: Readonly<Record<string, { first: string; more?: string }>> = {
  'sends nothing': { first: '' },
  'stops within the request line': { first: 'POST /au' },
  'stops within the headers': { first: HEAD },
  'drips headers': { first: HEAD, more: 'x: y\r\n' },
  'drips empty lines before a request': { first: '', more: '\r\n' },
  'stops before the body': { first: `${HEAD}content-length: 50\r\n\r\n` },
  'drips a body': { first: `${HEAD}content-length: 60000\r\n\r\n`, more: 'x' },
  'drips chunks': { first: `${HEAD}transfer-encoding: chunked\r\n\r\n`, more: '1\r\nx\r\n' },
  'drips an endless extension of a chunk': { first: `${HEAD}transfer-encoding: chunked\r\n\r\n1;`, more: 'x' },
};

describe('a request that does not arrive', () => {
  test.each(Object.entries(SLOW))('is answered 400 and its connection ends: the client %s', async (_name, { first, more }) => {
    const reader = await client();
    const deaf = await client();
    deaf.pause();
    for (const socket of [reader, deaf]) {
      socket.write(first);
      if (more !== undefined) void drip(socket, more, 60);
    }
    const [text, afterMs] = await Promise.all([readAll(reader), untilHeld(0, ENDED_MS + 2_000)]);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain('"error":"invalid_request"');
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(afterMs).toBeLessThan(ENDED_MS + 1_000);
    // who reads afterwards and has not gone on writing finds the answer, though nobody waited for that
    if (more === undefined) expect(await readAll(deaf)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('does nothing, though its rest arrives after all', async () => {
    const access_token = await api.tokenOf('shop');
    const whole = post('/create_transaction', { access_token, amount: '5', crypto_selected: 'BTC' });
    const [inHeaders, inBody] = [await client(), await client()];
    const before = (await api.rowCounts()).transactions;
    inHeaders.write(whole.slice(0, 40));
    inBody.write(whole.slice(0, -5));
    await Promise.all([once(inHeaders, 'data'), once(inBody, 'data')]);
    inHeaders.write(whole.slice(40));
    inBody.write(whole.slice(-5));
    await untilHeld(0, 2_000);
    expect((await api.rowCounts()).transactions).toBe(before);
  });

  test('that was answered before it arrived gets no second answer', async () => {
    const [tooLarge, nowhere] = [await client(), await client()];
    tooLarge.write(`${HEAD}content-length: 70000\r\n\r\n`);
    nowhere.write('POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n');
    void drip(tooLarge, 'x', 50);
    const texts = Promise.all([readAll(tooLarge), readAll(nowhere)]);
    await untilHeld(0, ENDED_MS + 2_000);
    for (const [text, status] of (await texts).map((one, index) => [one, [413, 404][index]] as const)) {
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    }
  });

  test('holds forty connections no longer than one, in the times of the contract', async () => {
    const server = await makeApi();
    expect(CONNECTION_LIMITS.requestMs).toBe(30_000);
    const started = performance.now();
    const sockets = await Promise.all(Array.from({ length: 40 }, () => client(server)));
    sockets.forEach((socket, index) => {
      socket.pause();
      const { first, more } = Object.values(SLOW)[index % Object.keys(SLOW).length] as (typeof SLOW)[string];
      socket.write(first);
      if (more !== undefined) void drip(socket, more, 1_000);
    });
    await pause(29_500);
    expect(await held(server)).toBe(40);
    await untilHeld(0, 10_000, server);
    expect(performance.now() - started).toBeLessThan(35_500);
    expect((await server.send('/healthz', undefined, {}, 'GET')).status).toBe(200);
    await server.end();
  }, 60_000);
});

describe('an answer that is not taken', () => {
  test('ends its connection, however many requests follow it', async () => {
    for (let n = 0; n < 30; n++) await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
    const access_token = await api.tokenOf('shop');
    const deaf = await client();
    deaf.pause();
    const request = post('/list_transactions', { access_token, limit: 30 });
    void drip(deaf, request.repeat(20), 20);
    // what the systems on both sides take is not waiting yet
    await untilHeld(0, 20_000);
  });

  test('is not missed by who reads slowly', async () => {
    const access_token = await api.tokenOf('shop');
    const slow = await client();
    const wanted = 400;
    slow.pause();
    for (let n = 0; n < wanted; n++) slow.write(post('/list_transactions', { access_token, limit: 30 }));
    slow.end();
    let text = '';
    for await (const chunk of slow) {
      text += (chunk as Buffer).toString('latin1');
      await pause(1);
    }
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(wanted);
    expect(text.length).toBeGreaterThan(10_000_000);
  });
});

describe('a connection without a request', () => {
  test('ends after a while, also when empty lines come on it', async () => {
    const [quiet, dripping] = [await client(), await client()];
    for (const socket of [quiet, dripping]) {
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
      await once(socket, 'data');
    }
    void drip(dripping, '\r\n', 100);
    await untilHeld(1, FAST.idleMs + 2_500);
    await untilHeld(0, FAST.idleMs + FAST.requestMs + 1_000);
  });

  test('is kept while it is used', async () => {
    const busy = await client();
    const until = performance.now() + FAST.idleMs + FAST.requestMs + 500;
    while (performance.now() < until) {
      busy.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
      expect(String(await once(busy, 'data'))).toContain('200 OK');
      await pause(FAST.idleMs / 2);
    }
    expect(busy.destroyed).toBe(false);
  });
});

describe('a client that has closed its side', () => {
  test('still gets the answer to what it sent whole', async () => {
    const access_token = await api.tokenOf('shop');
    const socket = await client();
    socket.end(post('/create_transaction', { access_token, amount: '5', crypto_selected: 'BTC' }));
    expect(await readAll(socket)).toContain('"transaction_id"');
    await untilHeld(0, 1_000);
  });

  test('is not waited with, and gets the status as it is', async () => {
    const access_token = await api.tokenOf('shop');
    const { json } = await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
    const started = performance.now();
    const [late, atOnce] = [await client(), await client()];
    const wait = post('/check_transaction', { access_token, transaction_id: json.transaction_id, wait_seconds: 30 });
    late.write(wait);
    atOnce.end(wait);
    await pause(100);
    late.end();
    for (const socket of [late, atOnce]) expect(await readAll(socket)).toContain('"status":"started"');
    await untilHeld(0, 1_000);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test('in the middle of a request is answered 400 and let go', async () => {
    const socket = await client();
    socket.end(`${HEAD}content-length: 50\r\n\r\n{`);
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 400 /);
    await untilHeld(0, 1_000);
  });
});

describe('too many connections', () => {
  test('of one client keep no other out, and what is being answered goes on', async () => {
    const access_token = await api.tokenOf('shop');
    const { json } = await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' });
    const waiting = await client();
    waiting.write(post('/check_transaction', { access_token, transaction_id: json.transaction_id, wait_seconds: 2 }));
    const other = await client(api, '127.0.0.2');
    other.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(other, 'data');
    for (let n = 0; n < 3 * FAST.most; n++) await client();
    await untilHeld(FAST.most, 1_000);
    const another = await client(api, '127.0.0.3');
    for (const socket of [other, another]) {
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
      expect(String(await once(socket, 'data'))).toContain('200 OK');
    }
    expect(String(await once(waiting, 'data'))).toContain('"status":"started"');
    expect(await held()).toBeLessThanOrEqual(FAST.most);
  });
});
