// Outbound calls that are made in a thread of their own: the same answers, and nothing that a server has computed here holds up this one.
import { expect, test } from 'vitest';
import { createOutboundThread } from '../../src/outside/outbound/outbound-thread.ts';
import { dearServer } from './dear-server.ts';
import { asking, listening, opened, outboundServersForEach, serving } from './outbound-servers.ts';

outboundServersForEach();

const sandbox = () => opened(createOutboundThread({ isSandbox: true }));

test('an answer comes back as it was sent', async () => {
  const url = await serving((request, response) => {
    request.once('data', (body) =>
      response.writeHead(503, { 'retry-after': '7' }).end(`${request.method} ${request.headers['webhook-id']} ${body}`),
    );
  });
  const result = await sandbox().call({ ...asking, url, headers: { 'webhook-id': 'evt_1' }, body: '{"a":"ö"}' });
  expect(result).toMatchObject({ kind: 'answered', status: 503, isCut: false, retryAfterMs: 7_000 });
  expect(result.kind === 'answered' && Buffer.from(result.body).toString()).toBe('POST evt_1 {"a":"ö"}');
});

test('what says all counts although its body is broken off', async () => {
  const { port } = await listening((socket) => void socket.end('HTTP/1.1 202 Taken\r\ncontent-length: 9\r\n\r\n'));
  const url = `http://127.0.0.1:${port}/`;
  const outbound = sandbox();
  expect(await outbound.call({ ...asking, url })).toMatchObject({ kind: 'failed' });
  const saysAll = [{ first: 200, last: 202 }];
  expect(await outbound.call({ ...asking, url, saysAll })).toMatchObject({ kind: 'answered', status: 202 });
});

test('a call that is given up ends at once', async () => {
  const reached = Promise.withResolvers<void>();
  const { port } = await listening(() => reached.resolve());
  const limit = new AbortController();
  const call = sandbox().call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs: 60_000, signal: limit.signal });
  await reached.promise;
  limit.abort();
  expect(await call).toMatchObject({ kind: 'failed', failure: 'timed_out', reason: 'given up' });
});

test('outside the sandbox it calls what the guard lets it call', async () => {
  const outbound = opened(createOutboundThread({ isSandbox: false, ports: [443] }));
  for (const url of ['http://example.com/', 'https://example.com:8443/', 'https://127.0.0.1/']) {
    const must = expect.any(String);
    expect(outbound.problemOf(url)).toEqual(must);
    expect(await outbound.addressProblemOf(url)).toBe(outbound.problemOf(url));
    expect(await outbound.call({ ...asking, url })).toMatchObject({ kind: 'failed', failure: 'url_not_allowed' });
  }
  expect(outbound.problemOf('https://localhost/')).toBe(null);
  expect(await outbound.addressProblemOf('https://localhost/')).toBe('a URL whose host is on the public internet');
  expect(await outbound.call({ ...asking, url: 'https://localhost/' })).toMatchObject({ failure: 'address_not_allowed' });
});

test('certificates that take long to check take nothing of this thread', async () => {
  const outbound = sandbox();
  const { port } = await dearServer('TLSv1.3');
  // what the start of the thread takes here is no certificate's
  expect(await outbound.addressProblemOf('https://localhost/')).toBe(null);
  const before = process.threadCpuUsage();
  const result = await outbound.call({ ...asking, url: `https://localhost:${port}/` });
  expect(result).toMatchObject({ kind: 'failed', reason: 'CERT_SIGNATURE_FAILURE' });
  const { user, system } = process.threadCpuUsage(before);
  // half of what they take
  expect((user + system) / 1_000).toBeLessThan(23);
});

test('heads that never end leave the thread its memory', async () => {
  const reached = Promise.withResolvers<void>();
  const { port, connections } = await listening((socket) => {
    socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(4_000)}`));
    if (connections() === 256) reached.resolve();
  });
  const url = await serving((_, response) => response.end());
  const outbound = sandbox();
  const hanging = Array.from({ length: 256 }, () =>
    outbound.call({ ...asking, connectionsOf: null, url: `http://127.0.0.1:${port}/` }),
  );
  await reached.promise;
  expect(await outbound.call({ ...asking, url })).toMatchObject({ kind: 'answered' });
  for (const call of hanging) expect(await call).toMatchObject({ kind: 'failed', failure: 'malformed_answer' });
});

test('after it was closed nothing is left of it', async () => {
  const { port } = await listening();
  const outbound = createOutboundThread({ isSandbox: true });
  const call = outbound.call({ ...asking, url: `http://127.0.0.1:${port}/`, withinMs: 60_000 });
  await outbound.close();
  const reason = 'the thread was closed';
  expect(await call).toMatchObject({ kind: 'failed', failure: 'failed_here', reason });
});
