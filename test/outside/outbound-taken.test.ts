// A merchant whose servers have taken much of what all share: nothing more is computed for him there, also of what is under way.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, getCACertificates, type SecureVersion, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UNWATCHED } from '../../src/outside/outbound/handshake-costs.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { asking, closing, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

const FAILED = { kind: 'failed', failure: 'failed_here', reason: 'servers of this merchant took much of what all share' };

/** @returns where it is, and the connections on which it was asked something */
async function asked(maxVersion: SecureVersion = 'TLSv1.3'): Promise<{ url: string; next(): Promise<TLSSocket> }> {
  const server = createServer({ key: own.key, cert: own.certificate, maxVersion });
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    async next() {
      const [socket] = (await once(server, 'secureConnection')) as [TLSSocket];
      closing.push(() => socket.destroy());
      await once(
        socket.on('error', () => undefined),
        'data',
      );
      return socket;
    },
  };
}

/** Calls for two merchants, of whom one may be told to be over; what was computed for him since is counted. */
function outboundOf(merchantId: bigint) {
  let [isOver, parts] = [false, 0];
  const outbound = createOutbound(ANYWHERE, {
    ...UNWATCHED,
    compute(whose, part) {
      if (isOver && whose === merchantId) parts += 1;
      part();
    },
    isOver: (whose) => isOver && whose === merchantId,
  });
  return {
    ...opened(outbound),
    end(): void {
      isOver = true;
    },
    partsSince: () => parts,
  };
}

test('what comes of an answer to him ends the call here, and others get theirs', async () => {
  const [{ url, next }, { call, end, partsSince }] = [await asked(), outboundOf(1n)];
  const [first, second] = [next(), call({ ...asking, merchantId: 1n, url })];
  const his = await first;
  his.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1');
  const [other, others] = [next(), call({ ...asking, merchantId: 2n, url })];
  const theirs = await other;
  end();
  for (const socket of [his, theirs]) socket.write(socket === his ? '2' : 'HTTP/1.1 204 No Content\r\n\r\n');
  expect(await second).toMatchObject(FAILED);
  expect(await others).toMatchObject({ kind: 'answered', status: 204 });
  expect(partsSince()).toBe(0);
});

test('nor is a handshake with another of his servers computed', async () => {
  const [{ url }, { call, end, partsSince }] = [await asked(), outboundOf(1n)];
  end();
  expect(await call({ ...asking, merchantId: 1n, url })).toMatchObject(FAILED);
  expect(partsSince()).toBe(0);
});

test('what HTTP makes of an answer counts for him too', async () => {
  let parts = 0;
  const compute = (_: bigint | null, part: () => void): void => {
    parts += 1;
    part();
  };
  const { call } = opened(createOutbound(ANYWHERE, { ...UNWATCHED, compute }));
  // nothing comes between its handshake and its answer
  const { url, next } = await asked('TLSv1.2');
  const [socket, answered] = [next(), call({ ...asking, url })];
  const his = await socket;
  parts = 0;
  his.write('HTTP/1.1 204 No Content\r\n\r\n');
  expect(await answered).toMatchObject({ kind: 'answered', status: 204 });
  // one by TLS, one by HTTP
  expect(parts).toBe(2);
});

test.each(['TLSv1.2', 'TLSv1.3'] as const)('an answer that ends its connection counts once (%s)', async (version) => {
  let [within, most] = [0, 0];
  const compute = (_: bigint | null, part: () => void): void => {
    most = Math.max(most, ++within);
    part();
    within -= 1;
  };
  const { call } = opened(createOutbound(ANYWHERE, { ...UNWATCHED, compute }));
  const { url, next } = await asked(version);
  const [socket, answered] = [next(), call({ ...asking, url })];
  // both come in one part: HTTP reads the answer while TLS reads the end
  (await socket).end('HTTP/1.1 204 No Content\r\n\r\n');
  expect(await answered).toMatchObject({ kind: 'answered', status: 204 });
  expect(most).toBe(1);
});
