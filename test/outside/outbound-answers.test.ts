// What a call to a stranger's address reads of the answer: bounded in time, in headers and in body, and never what it redirects to.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Outbound } from '../../src/core/outbound.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { asking, listening, opened, outboundServersForEach, serving } from './outbound-servers.ts';

outboundServersForEach();

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n';
const LIKE_ONE = `\r\n\r\n${CONTINUE}`;
const TAKEN = `HTTP/1.1 201 Created\r\ncontent-length: ${LIKE_ONE.length}\r\n\r\n${LIKE_ONE}`;

describe('an answer', () => {
  const sandbox = (): Outbound => opened(createOutbound(ANYWHERE));

  test('is given with its status, its body and how long it took', async () => {
    const url = await serving((request, response) => {
      response.statusCode = 201;
      request.setEncoding('utf8').on('data', (text) => response.end(`${request.headers['x-mine']} ${text}`));
    });
    const began = performance.now();
    const byName = url.replace('127.0.0.1', 'localhost');
    const result = await sandbox().call({
      ...asking,
      url: byName,
      headers: { 'x-mine': 'yes' },
      body: 'hello',
      withinMs: 60_000,
    });
    expect(result).toMatchObject({ kind: 'answered', status: 201, isCut: false });
    expect(result.kind === 'answered' && Buffer.from(result.body).toString()).toBe('yes hello');
    expect(result.tookMs).toBeGreaterThanOrEqual(0);
    expect(result.tookMs).toBeLessThanOrEqual(performance.now() - began + 1);
  });

  test('may take its time, as long as it is whole within the limit', async () => {
    const later = (work: () => unknown) => void setTimeout(work, 2_200);
    const [head, body] = [
      await serving((_request, response) => later(() => response.end('late'))),
      await serving((_request, response) => {
        response.write('early, ');
        later(() => response.end('late'));
      }),
    ];
    const results = await Promise.all([head, body].map((url) => sandbox().call({ ...asking, url, withinMs: 60_000 })));
    const texts = results.map((result) => result.kind === 'answered' && Buffer.from(result.body).toString());
    expect(texts).toEqual(['late', 'early, late']);
  });

  test('is not waited for by who has given up, also before the call', async () => {
    const victim = await listening();
    const url = `http://127.0.0.1:${victim.port}/`;
    const result = await sandbox().call({ ...asking, url, signal: AbortSignal.abort() });
    expect(result).toMatchObject({ kind: 'failed', failure: 'timed_out', reason: 'given up' });
    expect(victim.connections()).toBe(0);
  });

  test('that redirects is not followed', async () => {
    const victim = await listening();
    const url = await serving((_request, response) =>
      response.writeHead(307, { location: `http://127.0.0.1:${victim.port}/` }).end(),
    );
    expect(await sandbox().call({ ...asking, url })).toMatchObject({ kind: 'answered', status: 307 });
    expect(victim.connections()).toBe(0);
  });

  test('that has a long body is cut, and its connection closed', async () => {
    let isClosed: Promise<unknown> = Promise.reject(new Error('nobody called'));
    isClosed.catch(() => undefined);
    const url = await serving((_request, response) => {
      isClosed = once(response, 'close');
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
        response.once('drain', more);
      };
      more();
    });
    const result = await sandbox().call({ ...asking, url, mostBytes: 1000 });
    expect(result).toMatchObject({ kind: 'answered', status: 200, isCut: true });
    expect(result.kind === 'answered' && result.body.length).toBe(1000);
    await isClosed;
  });

  test('is read up to its bound and no further, in however many parts it comes', async () => {
    const url = await serving((request, response) => {
      response.write('a'.repeat(600), () => setTimeout(() => response.end('b'.repeat(Number(request.headers['x-more']))), 20));
    });
    const read = async (more: number) => {
      const result = await sandbox().call({ ...asking, url, headers: { 'x-more': String(more) }, mostBytes: 1000 });
      return result.kind === 'answered' ? [Buffer.from(result.body).toString(), result.isCut] : result;
    };
    const whole = 'a'.repeat(600) + 'b'.repeat(400);
    expect([await read(400), await read(401), await read(900)]).toEqual([
      [whole, false],
      [whole, true],
      [whole, true],
    ]);
  });

  test('that is a compressed bomb stays as small as it came', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const url = await serving((request, response) => {
      expect(request.headers['accept-encoding']).toBe('identity');
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    });
    const result = await sandbox().call({ ...asking, url, mostBytes: 65_536 });
    expect(result).toMatchObject({ kind: 'answered', isCut: false });
    expect(result.kind === 'answered' && Buffer.from(result.body).equals(bomb)).toBe(true);
  });

  test('that comes in drips ends when the time is up', async () => {
    const { port } = await listening((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 20);
      socket.on('close', () => clearInterval(drip));
    });
    const began = performance.now();
    expect(await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs: 300 })).toMatchObject({
      failure: 'timed_out',
    });
    expect(performance.now() - began).toBeLessThan(3_000);
  });

  test('whose body does not come whole counts where its status says all, and else not', async () => {
    const head = (status: string) => `HTTP/1.1 ${status}\r\ncontent-length: 100000\r\n\r\nso far`;
    const dripping = (status: string) => (socket: Socket) => {
      socket.write(head(status));
      const drip = setInterval(() => socket.write('x'), 20);
      socket.on('close', () => clearInterval(drip));
    };
    const broken = (status: string) => (socket: Socket) => void socket.end(head(status));
    const garbled = (socket: Socket) =>
      void socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nso far\r\nzz\r\n');
    const ask = async (onConnection: (socket: Socket) => void, withinMs = 60_000) => {
      const { port } = await listening(onConnection);
      const saysAll = [{ first: 200, last: 299 }];
      return sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs, saysAll });
    };
    for (const taken of [await ask(dripping('202 Accepted')), await ask(broken('202 Accepted')), await ask(garbled)]) {
      expect(taken).toMatchObject({ kind: 'answered', isCut: true });
      // whoever calls has others waiting
      expect(taken.tookMs).toBeLessThan(5_000);
      expect(taken.kind === 'answered' && Buffer.from(taken.body).toString()).toMatch(/^so far/);
    }
    expect(await ask(dripping('500 No'), 300)).toMatchObject({ kind: 'failed', failure: 'timed_out' });
    expect(await ask(broken('500 No'))).toMatchObject({ kind: 'failed', failure: 'connection_failed' });
  });

  test.each([
    ['content-length: abc', 'HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\nhello'],
    ['two lengths', 'HTTP/1.1 202 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nhello'],
    ['headers that are broken off', `${CONTINUE}HTTP/1.1 200 OK\r\ncontent-le`],
  ])('that cannot be parsed because of %s is none, whatever its status', async (_what, bytes) => {
    const { port } = await listening((socket) => socket.on('data', () => socket.end(bytes)));
    const result = await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, saysAll: [{ first: 100, last: 599 }] });
    expect(result).toMatchObject({ kind: 'failed' });
  });

  test('whose headers come in drips ends when the time is up', async () => {
    const { port } = await listening((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ');
      const drip = setInterval(() => socket.write('y'), 20);
      socket.on('close', () => clearInterval(drip));
    });
    expect(await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs: 300 })).toMatchObject({
      failure: 'timed_out',
    });
  });

  test('is the one after interim answers, which a server may send without being asked', async () => {
    const url = await serving((_request, response) => {
      response.writeContinue();
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.writeProcessing();
      response.writeContinue();
      response.end('taken');
    });
    const outbound = sandbox();
    for (let n = 0; n < 3; n++) {
      const result = await outbound.call({ ...asking, url });
      expect(result).toMatchObject({ kind: 'answered', status: 200, isCut: false });
      expect(result.kind === 'answered' && Buffer.from(result.body).toString()).toBe('taken');
    }
  });

  test.each([
    ['all at once', [`${CONTINUE}${CONTINUE}${TAKEN}`]],
    ['by itself', [CONTINUE, TAKEN]],
    ['byte by byte', [...`${CONTINUE}${HINTS}${CONTINUE}${TAKEN}`]],
    ['with headers', [`HTTP/1.1 100 Go on\r\nx: HTTP/1.1 100 \r\n\r\n`, `${HINTS}${CONTINUE}`, TAKEN]],
    ['behind empty lines', [`\r\n${CONTINUE}\r\n\r\n${CONTINUE}`, TAKEN]],
  ])('is the one after 100 Continue %s', async (_how, parts) => {
    const { port } = await listening((socket) => {
      const answer = async (): Promise<void> => {
        for (const part of parts) await new Promise((written) => socket.write(part, () => setImmediate(written)));
        socket.end();
      };
      socket.setNoDelay(true).once('data', () => void answer());
    });
    const result = await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/` });
    expect(result).toMatchObject({ kind: 'answered', status: 201, isCut: false });
    // what only looks like one is the receiver's text
    expect(result.kind === 'answered' && Buffer.from(result.body).toString()).toBe(LIKE_ONE);
  });

  test('is none that changes to a protocol that nobody asked for, whatever follows', async () => {
    const change = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n';
    const { port } = await listening((socket) => socket.once('data', () => socket.end(`${change}${TAKEN}`)));
    expect(await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/` })).toMatchObject({ kind: 'failed' });
  });

  test.each([
    ['one huge header', () => `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(1_000_000)}\r\n\r\n`],
    ['the status of a change of protocol', () => 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['no status', () => 'HTTP/1.1 000 Nothing\r\n\r\n'],
    ['very many headers', () => `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(200_000)}\r\n`],
    ['no HTTP', () => 'SSH-2.0-OpenSSH_9.2p1\r\n'],
    ['what only looks like HTTP', () => 'HTTP/1,1 200 OK\r\n\r\n'],
    ['a letter in its status', () => 'HTTP/1.1 2x0 OK\r\n\r\n'],
    ['what follows nine in its status', () => 'HTTP/1.1 2:0 OK\r\n\r\n'],
    ['what precedes zero in its status', () => 'HTTP/1.1 2/0 OK\r\n\r\n'],
  ])('with %s is no answer', async (_what, bytes) => {
    const { port } = await listening((socket) => socket.once('data', () => socket.end(bytes())));
    const result = await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, saysAll: [{ first: 100, last: 599 }] });
    expect(result).toMatchObject({ kind: 'failed', failure: 'malformed_answer' });
  });

  test.each([
    ['interim answers', '', HINTS],
    ['100 Continue', '', CONTINUE],
    ['a reason phrase', 'HTTP/1.1 200 ', 'a'],
    ['the extension of a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;', 'a'],
  ])('that goes on with %s without end is given up soon', async (_what, head, part) => {
    const flood = part.repeat(Math.ceil(100_000 / part.length));
    let sent = 0;
    const { port } = await listening((socket) => {
      const more = (): void => {
        while (!socket.destroyed && socket.write(flood)) sent += flood.length;
        socket.once('drain', more);
      };
      socket.once('data', () => {
        socket.write(head);
        more();
      });
    });
    const result = await sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs: 20_000 });
    expect(result).toMatchObject({
      kind: 'failed',
      failure: 'malformed_answer',
      reason: expect.stringContaining('an answer of more than'),
    });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('after many others on the same connections is read as the first', async () => {
    const ports = new Set<number | undefined>();
    const url = await serving((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('x'.repeat(60_000));
    });
    const outbound = sandbox();
    for (let n = 0; n < 40; n++)
      expect(await outbound.call({ ...asking, url, mostBytes: 65_536 })).toMatchObject({ kind: 'answered', isCut: false });
    expect(ports.size).toBeLessThan(5);
  });

  test('that never comes, and a port where nobody listens, have names of their own', async () => {
    const silent = await listening();
    const url = `http://127.0.0.1:${silent.port}/`;
    expect(await sandbox().call({ ...asking, url, withinMs: 200 })).toMatchObject({ failure: 'timed_out' });
    const closed = await listening((socket) => socket.destroy());
    expect(await sandbox().call({ ...asking, url: `http://127.0.0.1:${closed.port}/` })).toMatchObject({
      failure: 'connection_failed',
    });
  });

  test('is not waited for once the caller gives up', async () => {
    const silent = await listening();
    const giveUp = new AbortController();
    const asked = sandbox().call({ ...asking, url: `http://127.0.0.1:${silent.port}/`, signal: giveUp.signal });
    giveUp.abort();
    expect(await asked).toMatchObject({ kind: 'failed', failure: 'timed_out' });
  });
});
