// What is computed for a merchant's calls waits for his turn, and nothing of it is lost or comes in another order.
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { callInTurn } from '../../src/outside/outbound/calls-in-turn.ts';
import { UNWATCHED } from '../../src/outside/outbound/handshake-costs.ts';
import { CONNECT_TIMEOUT, createOutbound } from '../../src/outside/outbound/outbound.ts';
import { createOutboundThread } from '../../src/outside/outbound/outbound-thread.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { asking, closing, listening, opened, outboundServersForEach, serving } from './outbound-servers.ts';

outboundServersForEach();

const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

const [MANY, ONE] = [1n, 2n];
const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** @param answer what it does when it was asked something */
async function secureServer(answer: (socket: TLSSocket) => void): Promise<string> {
  const server = createServer({ key: own.key, cert: own.certificate }, (socket) => {
    socket.on('error', () => undefined).once('data', () => answer(socket));
    closing.push(() => socket.destroy());
  });
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return `https://localhost:${(server.address() as AddressInfo).port}/`;
}

/** Turns that come one after the other when they are called, each in its own turn of the event loop. */
function heldTurns() {
  const pieces: (() => void)[] = [];
  const whose = new Set<bigint | null>();
  let isHeld = false;
  function next(): void {
    if (isHeld) return;
    pieces.shift()?.();
    if (pieces.length > 0) setImmediate(next);
  }
  return {
    take(merchantId: bigint | null, piece: () => void): void {
      whose.add(merchantId);
      if (pieces.push(piece) === 1) setImmediate(next);
    },
    hold(): void {
      isHeld = true;
    },
    release(): void {
      isHeld = false;
      next();
    },
    waiting: () => pieces.length,
    whose: () => [...whose],
  };
}

function outboundWith(turns: ReturnType<typeof heldTurns>) {
  return opened(createOutbound(ANYWHERE, { ...UNWATCHED, inTurn: turns.take }));
}

async function loopsOf(times: number): Promise<void> {
  for (let n = 0; n < times; n++) await new Promise((resolve) => setImmediate(resolve));
}

test.each([
  ['ends', (socket: TLSSocket) => void socket.end(ANSWER)],
  ['is broken off', (socket: TLSSocket) => void socket.write(ANSWER, () => socket.destroy())],
])('an answer is heard although its connection %s before its turn comes', async (_, answer) => {
  const turns = heldTurns();
  const url = await secureServer((socket) => {
    turns.hold();
    socket.once('close', () => void loopsOf(20).then(turns.release));
    answer(socket);
  });
  const result = await outboundWith(turns).call({ ...asking, merchantId: ONE, url });
  expect(result).toMatchObject({ kind: 'answered', status: 200, body: Buffer.from('ok') });
  expect(turns.whose()).toEqual([ONE]);
});

test('of what comes before its turn two parts at most are read', async () => {
  const turns = heldTurns();
  const body = 'x'.repeat(200_000);
  let waiting = 0;
  const url = await secureServer((socket) => {
    turns.hold();
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`, () => {
      void loopsOf(50).then(() => {
        waiting = turns.waiting();
        turns.release();
      });
    });
  });
  const result = await outboundWith(turns).call({ ...asking, mostBytes: body.length, url });
  expect(waiting).toBe(2);
  expect(result).toMatchObject({ kind: 'answered', body: Buffer.from(body), isCut: false });
});

test('a handshake is read on when two parts of it that are no whole record have had their turn', async () => {
  const turns = heldTurns();
  const secure = await secureServer((socket) => void socket.end(ANSWER));
  const { port } = await listening((socket) => {
    const server = connect(Number(new URL(secure).port), '127.0.0.1').on('error', () => undefined);
    closing.push(() => server.destroy());
    socket.setNoDelay().pipe(server);
    server.once('data', (hello: Buffer) => void passOn(hello, socket, server.pause()));
  });
  async function passOn(hello: Buffer, socket: Socket, server: Socket): Promise<void> {
    turns.hold();
    for (const [at, part] of [hello.subarray(0, 2), hello.subarray(2, 4)].entries()) {
      socket.write(part);
      while (turns.waiting() <= at) await loopsOf(1);
    }
    turns.release();
    socket.write(hello.subarray(4));
    server.pipe(socket);
  }
  const result = await outboundWith(turns).call({ ...asking, url: `https://localhost:${port}/` });
  expect(result).toMatchObject({ kind: 'answered', status: 200 });
});

test('a connection that breaks before the turn of its handshake ends the call', async () => {
  const turns = heldTurns();
  const { port } = await listening((socket) => {
    turns.hold();
    socket.once('close', () => void loopsOf(20).then(turns.release));
    socket.resetAndDestroy();
  });
  const result = await outboundWith(turns).call({ ...asking, url: `https://localhost:${port}/` });
  expect(result).toMatchObject({ kind: 'failed', failure: 'connection_failed', reason: 'ECONNRESET' });
});

test('the time of a call begins when it is asked for', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const url = await serving((_, response) => response.end('ok'));
  let nowMs = 500;
  const waiting = (ms: number) => ({
    begin(_: bigint, piece: () => void): void {
      nowMs += ms;
      piece();
    },
  });
  const call = (ms: number, more: object = {}) => callInTurn(outbound, waiting(ms), { ...asking, url, ...more }, () => nowMs);
  const first = await call(4_000);
  expect(first).toMatchObject({ kind: 'answered', status: 200 });
  expect(first.tookMs).toBeGreaterThanOrEqual(4_000);
  // nothing is known of the server
  const late = {
    kind: 'failed',
    failure: 'failed_here',
    reason: 'its turn did not come',
    tookMs: 5_000,
    waitedMs: 5_000,
    hasNotBegun: true,
  };
  expect(await call(5_000)).toEqual(late);
  expect(await call(6_000)).toEqual({ ...late, tookMs: 6_000, waitedMs: 6_000 });
  const { port } = await listening();
  const hanging = { url: `http://127.0.0.1:${port}/`, withinMs: 200 };
  expect(await call(100, hanging)).toMatchObject({ failure: 'timed_out', reason: 'no whole answer within 0.1 s' });
  // whoever had less than half of it has not shown that he is away, unless something else is wrong with him
  const reason = 'its turn came late: no whole answer within 0.099 s';
  const failed = await call(101, hanging);
  expect(failed).toMatchObject({ kind: 'failed', failure: 'failed_here', reason });
  expect(failed.tookMs).toBeGreaterThanOrEqual(190);
  // nor has who is asked again with less than half of what the call had at first
  expect(await call(1, { ...hanging, wholeMs: 399 })).toMatchObject({ failure: 'failed_here' });
  expect(await call(1, { ...hanging, wholeMs: 397 })).toMatchObject({ failure: 'timed_out' });
  expect(await call(199, hanging)).toMatchObject({ reason: 'its turn came late: no whole answer within 0.001 s' });
  expect(await call(4_900, { url: 'http://127.0.0.1:1/' })).toMatchObject({ failure: 'connection_failed' });
});

test('a call whose turn does not come ends with its time, and does not begin after that', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  let came = 0;
  const url = await serving((_, response) => response.end(String(++came)));
  const [pieces, whose]: [(() => void)[], bigint[]] = [[], []];
  const turns = { begin: (whom: bigint, piece: () => void) => void (pieces.push(piece) && whose.push(whom)) };
  const asked = { ...asking, url, withinMs: 50, merchantId: null };
  const failed = await callInTurn(outbound, turns, asked, () => 7);
  expect(whose).toEqual([0n]);
  expect(failed).toEqual({
    kind: 'failed',
    failure: 'failed_here',
    reason: 'its turn did not come',
    tookMs: 50,
    waitedMs: 50,
    hasNotBegun: true,
  });
  for (const piece of pieces) piece();
  await outbound.call({ ...asking, url });
  expect(came).toBe(1);
});

test('a call that is given up does not wait for its turn, nor begin when it comes', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  let came = 0;
  const url = await serving((_, response) => response.end(String(++came)));
  const pieces: (() => void)[] = [];
  const turns = { begin: (_: bigint, piece: () => void) => void pieces.push(piece) };
  let nowMs = 0;
  for (const waitedMs of [1_000, 4_900]) {
    const given = new AbortController();
    const call = callInTurn(outbound, turns, { ...asking, url, signal: given.signal }, () => nowMs);
    nowMs += waitedMs;
    given.abort();
    expect(await call).toMatchObject({ kind: 'failed', failure: 'timed_out', reason: 'given up' });
    nowMs -= waitedMs;
  }
  for (const piece of pieces) piece();
  await outbound.call({ ...asking, url });
  expect(came).toBe(1);
});

test('a server whose handshake waits for its turns has not shown that it is away, one that is silent has', async () => {
  const turns = heldTurns();
  const { port } = await listening(() => turns.hold());
  const outbound = outboundWith(turns);
  const request = { ...asking, url: `https://localhost:${port}/`, withinMs: 400 };
  const call = () => callInTurn(outbound, { begin: (_, piece) => piece() }, request);
  const late = await call();
  expect(late).toMatchObject({ failure: 'failed_here', reason: 'its turn came late: no whole answer within 0.4 s' });
  expect(turns.waiting()).toBeGreaterThan(0);
  turns.release();
  const silent = await listening();
  request.url = `https://localhost:${silent.port}/`;
  expect(await call()).toMatchObject({ failure: 'timed_out', reason: 'no whole answer within 0.4 s' });
});

test('a connection that is not there in time because its turns came late says nothing either', async () => {
  const tooLate = (waitedMs: number): OutboundResult => {
    const failed = { kind: 'failed', failure: 'connection_failed', reason: CONNECT_TIMEOUT } as const;
    return { ...failed, tookMs: 1_000, waitedMs };
  };
  const call = (waitedMs: number, more: Partial<OutboundResult> = {}) => {
    const outbound = { call: async () => ({ ...tooLate(waitedMs), ...more }) as OutboundResult };
    return callInTurn(outbound, { begin: (_, piece) => piece() }, { ...asking, url: 'https://localhost/' }, () => 0);
  };
  const reason = `its turn came late: ${CONNECT_TIMEOUT}`;
  expect(await call(501)).toMatchObject({ failure: 'failed_here', reason, waitedMs: 501 });
  expect(await call(500)).toMatchObject({ failure: 'connection_failed', reason: CONNECT_TIMEOUT });
  // what it has waited before it began is not the connection's time
  let nowMs = 0;
  const later = (_: bigint, piece: () => void): void => {
    nowMs = 600;
    piece();
  };
  const asked = { ...asking, url: 'https://localhost/' };
  const begunLate = callInTurn({ call: async () => tooLate(300) }, { begin: later }, asked, () => nowMs);
  expect(await begunLate).toMatchObject({ failure: 'connection_failed', tookMs: 1_600 });
  expect(await call(999, { reason: 'ECONNREFUSED' } as Partial<OutboundResult>)).toMatchObject({ failure: 'connection_failed' });
});

test('the call of one merchant does not wait until all those of another one have begun', async () => {
  const outbound = opened(createOutboundThread({ isSandbox: true }));
  let came = 0;
  const url = await serving((_, response) => response.end(String(++came)));
  const call = (merchantId: bigint) => outbound.call({ ...asking, merchantId, connectionsOf: null, url });
  await Promise.all([call(MANY), call(ONE)]);
  came = 0;
  const many = Array.from({ length: 200 }, () => call(MANY));
  const one = await call(ONE);
  await Promise.all(many);
  expect(Number(Buffer.from((one as { body: Uint8Array }).body))).toBeLessThan(50);
});
