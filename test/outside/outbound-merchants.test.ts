// What one merchant's server takes of the thread that makes calls, and what the others have of it.
import { expect, test } from 'vitest';
import type { Outbound } from '../../src/core/outbound.ts';
import { createOutboundThread } from '../../src/outside/outbound/outbound-thread.ts';
import { dearServer } from './dear-server.ts';
import { asking, listening, opened, outboundServersForEach, serving } from './outbound-servers.ts';

outboundServersForEach();

const [DEAR, OTHER] = [1n, 2n];

/** A server that says on which of its connections it was asked. Each thread has connections of its own. */
async function counting(): Promise<string> {
  let connections = 0;
  const numbers = new WeakMap<object, number>();
  return serving(({ socket }, response) => {
    const number = numbers.get(socket) ?? ++connections;
    numbers.set(socket, number);
    response.end(String(number));
  });
}

function callsOf(outbound: Outbound) {
  return async (merchantId: bigint | null, url: string): Promise<string> => {
    const result = await outbound.call({ ...asking, merchantId, connectionsOf: `wh_${merchantId}`, url });
    return result.kind === 'answered' ? Buffer.from(result.body).toString() : result.reason;
  };
}

test('a merchant whose server took long is called from a second thread from then on, and nobody else is', async () => {
  const file = new URL('./slow-thread-program.ts', import.meta.url);
  const call = callsOf(opened(createOutboundThread({ isSandbox: true }, file)));
  const [url, dear] = [await counting(), await dearServer('TLSv1.3')];
  for (const merchantId of [DEAR, OTHER, null]) await call(merchantId, url);
  expect(await call(DEAR, url)).toBe('1');
  expect(await call(DEAR, `https://localhost:${dear.port}/`)).toBe('CERT_SIGNATURE_FAILURE');
  expect(await call(OTHER, url)).toBe('2');
  expect(await call(null, url)).toBe('3');
  expect(await call(DEAR, url)).toBe('4');
  expect(await call(DEAR, url)).toBe('4');
  // it rests in the second thread as it would in the first
  expect(await call(DEAR, `https://localhost:${dear.port}/`)).toBe('CERT_SIGNATURE_FAILURE');
  expect(await call(DEAR, `https://localhost:${dear.port}/`)).toBe('ERR_TLS_HANDSHAKE_TOO_DEAR');
});

test('a merchant whose server keeps the thread for ever is not called for a while, others from a new thread', async () => {
  const file = new URL('./outbound-merchants-program.ts', import.meta.url);
  const outbound = opened(createOutboundThread({ isSandbox: true }, file));
  const call = callsOf(outbound);
  const url = await counting();
  expect(await call(OTHER, url)).toBe('1');
  const [stuck, other] = await Promise.all([
    outbound.call({ ...asking, merchantId: DEAR, url: `${url}/for-ever` }),
    outbound.call({ ...asking, merchantId: OTHER, connectionsOf: `wh_${OTHER}`, url }),
  ]);
  // it was his server's work
  const lost = { kind: 'failed', failure: 'connection_failed', reason: 'the thread does not come back' };
  expect(stuck).toEqual({ ...lost, tookMs: expect.any(Number) });
  // by the new thread, in the time that was left
  expect(other).toMatchObject({ kind: 'answered', body: Buffer.from('2') });
  expect(other.tookMs).toBeGreaterThan(1_000);
  expect(await call(OTHER, url)).toBe('2');
  const resting = 'a server of this merchant takes too long to compute with';
  expect(await call(DEAR, url)).toBe(resting);
  expect(await call(null, url)).toBe('3');
});

test('a call that fails here twice has failed', async () => {
  const file = new URL('./outbound-merchants-program.ts', import.meta.url);
  const outbound = opened(createOutboundThread({ isSandbox: true }, file));
  const url = `${await counting()}/throw`;
  const ended = { kind: 'failed', failure: 'failed_here', reason: 'the thread ended: a fault of its own', hasNotBegun: false };
  expect(await outbound.call({ ...asking, merchantId: OTHER, url })).toEqual({ ...ended, tookMs: expect.any(Number) });
});

test('whoever takes too much of the second thread too is not taken for one whose call failed here', async () => {
  const file = new URL('./outbound-merchants-program.ts', import.meta.url);
  const outbound = opened(createOutboundThread({ isSandbox: true }, file));
  const url = `${await counting()}/too-much`;
  const failed = { kind: 'failed', failure: 'connection_failed', reason: 'he took too much' };
  expect(await outbound.call({ ...asking, merchantId: DEAR, url })).toMatchObject(failed);
  expect(await outbound.call({ ...asking, merchantId: DEAR, url })).toMatchObject(failed);
});

test('a call whose turn does not come in the second thread has failed here too, and has not begun', async () => {
  const file = new URL('./slow-thread-program.ts', import.meta.url);
  const outbound = opened(createOutboundThread({ isSandbox: true }, file));
  const [url, dear] = [await counting(), await dearServer('TLSv1.3')];
  await outbound.call({ ...asking, merchantId: DEAR, url: `https://localhost:${dear.port}/` });
  // its start is no wait for a turn
  expect(await callsOf(outbound)(DEAR, url)).toBe('1');
  const many = { ...asking, merchantId: DEAR, connectionsOf: null, withinMs: 20, url };
  const results = await Promise.all(Array.from({ length: 500 }, () => outbound.call(many)));
  const waited = results.filter((one) => one.kind === 'failed' && one.reason === 'its turn did not come');
  expect(waited.length).toBeGreaterThan(0);
  for (const one of waited) expect(one).toMatchObject({ failure: 'failed_here', hasNotBegun: true });
});

test('a server that is asked again with little time left has not shown that it is away', async () => {
  const file = new URL('./outbound-merchants-program.ts', import.meta.url);
  const outbound = opened(createOutboundThread({ isSandbox: true }, file));
  const [url, { port }] = [await counting(), await listening()];
  const [, other] = await Promise.all([
    outbound.call({ ...asking, merchantId: DEAR, url: `${url}/for-ever` }),
    outbound.call({ ...asking, merchantId: OTHER, url: `http://127.0.0.1:${port}/`, withinMs: 4_000 }),
  ]);
  expect(other).toMatchObject({ kind: 'failed', failure: 'failed_here', reason: expect.stringMatching(/^its turn came late: /) });
  expect(other).toMatchObject({ hasNotBegun: false });
});
