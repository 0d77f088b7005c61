// Faults of what makes outbound calls, which a server may bring about: they end one call, and no other one.
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer } from 'node:tls';
import { afterEach, expect, test, vi } from 'vitest';
import { createOutboundThread } from '../../src/outside/outbound/outbound-thread.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** The head of a record of no kind, of five bytes. */
const NO_RECORD = Buffer.from('ff03030005aaaaaaaaaa', 'hex');
const own = selfSignedCertificate();

/** Calls from a thread that trusts the certificate. */
function trusting(throws?: string) {
  vi.stubEnv('TRUSTED', own.certificate);
  vi.stubEnv('THROWS', throws);
  return opened(createOutboundThread({ isSandbox: true }, new URL('./outbound-trusting-program.ts', import.meta.url)));
}

/**
 * A server with the certificate that says what is no TLS as soon as its handshake has ended, or behind an answer.
 * @returns its port
 */
async function garbled(
  then: 'resets the connection' | 'says nothing more',
  answer: string | null = null,
  said = NO_RECORD,
): Promise<number> {
  let isAnswered = answer === null;
  const server = createServer({ key: own.key, cert: own.certificate }, (socket) =>
    socket
      .on('error', () => undefined)
      .once('data', () => {
        isAnswered = true;
        socket.write(answer ?? '');
      }),
  );
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  const { port } = await listening((socket) => {
    const behind = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
    socket.on('data', (part) => behind.write(part)).on('close', () => behind.destroy());
    // in TLS 1.3 all of the server's handshake is its first answer
    behind.on('data', (part) => {
      socket.write(isAnswered ? Buffer.concat([part, said]) : part);
      if (then === 'resets the connection') setImmediate(() => socket.resetAndDestroy());
    });
  });
  return port;
}

/** A server that answers when it is told to; how often it was asked. */
async function waiting() {
  const asked = Promise.withResolvers<() => void>();
  const { port, connections } = await listening((socket) =>
    socket.once('data', () => asked.resolve(() => void socket.end('HTTP/1.1 204 No Content\r\n\r\n'))),
  );
  return { url: `http://127.0.0.1:${port}/`, asked: asked.promise, connections };
}

test.each([
  ['what is no TLS after a handshake, and a reset,', NO_RECORD],
  ['a reset after a handshake', Buffer.alloc(0)],
])('%s ends the call and nobody else’s', async (_, said) => {
  const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const outbound = trusting();
  const [port, other] = [await garbled('resets the connection', null, said), await waiting()];
  const others = outbound.call({ ...asking, merchantId: 2n, url: other.url });
  const answer = await other.asked;
  for (let n = 0; n < 10; n++) {
    const result = await outbound.call({ ...asking, connectionsOf: null, url: `https://localhost:${port}/` });
    expect(result).toMatchObject({ kind: 'failed', failure: expect.stringMatching(/^(tls|connection)_failed$/) });
  }
  answer();
  expect(await others).toMatchObject({ kind: 'answered', status: 204 });
  expect(other.connections()).toBe(1);
  expect(told).not.toHaveBeenCalled();
});

test('what is no TLS after a handshake ends the call at once', async () => {
  const port = await garbled('says nothing more');
  const failed = { kind: 'failed', failure: 'tls_failed', reason: 'ERR_SSL_BAD_RECORD_TYPE' };
  expect(await trusting().call({ ...asking, url: `https://localhost:${port}/` })).toMatchObject(failed);
});

test('what came before it is heard', async () => {
  const port = await garbled('says nothing more', 'HTTP/1.1 202 Taken\r\ncontent-length: 9\r\n\r\n');
  const saysAll = [{ first: 200, last: 299 }];
  const result = await trusting().call({ ...asking, saysAll, url: `https://localhost:${port}/` });
  expect(result).toMatchObject({ kind: 'answered', status: 202, isCut: true });
  expect(result.tookMs).toBeLessThan(asking.withinMs);
});

test('an exception that belongs to no call ends none, and is told once', async () => {
  const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const outbound = trusting('a fault of a library');
  const other = await waiting();
  const others = outbound.call({ ...asking, url: other.url });
  const answer = await other.asked;
  await vi.waitUntil(() => told.mock.calls.length > 0, { timeout: asking.withinMs });
  // it is thrown again a few times
  setTimeout(answer, 200);
  expect(await others).toMatchObject({ kind: 'answered', status: 204 });
  expect(other.connections()).toBe(1);
  expect(told.mock.calls.map(([text]) => String(text).split('\n')[0])).toEqual([
    'outbound calls: a fault of this program, which ended at most one of them: Error: a fault of a library',
  ]);
});
