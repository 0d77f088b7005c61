// What a merchant's host may ask of the TLS here: each handshake is computed in the process that watches the chains.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();
const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

function callTo(port: number): Promise<OutboundResult> {
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  return opened(createOutbound(policy)).call({ ...asking, url: `https://localhost:${port}/` });
}

/** A server that asks for this many more handshakes before it takes what it got. */
async function askingAgain(times: number): Promise<{ readonly port: number; done(): number }> {
  let done = 0;
  function ask(socket: TLSSocket): void {
    if (done === times) socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    else
      socket.renegotiate({}, (error) => {
        if (error !== null) return;
        done++;
        ask(socket);
      });
  }
  const server = createServer({ key: own.key, cert: own.certificate, maxVersion: 'TLSv1.2' }, (socket) => {
    // Node's servers tell of more than three as of an attack, and go on
    socket.on('error', () => undefined).once('data', () => ask(socket));
    closing.push(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, done: () => done };
}

test('a server that asks for another handshake, as for a certificate, is heard', async () => {
  const { port, done } = await askingAgain(1);
  expect(await callTo(port)).toMatchObject({ kind: 'answered', status: 204 });
  expect(done()).toBe(1);
});

test('one that asks for handshakes without end is cut off', async () => {
  const { port, done } = await askingAgain(1_000);
  expect(await callTo(port)).toMatchObject({
    kind: 'failed',
    failure: 'malformed_answer',
    reason: 'an answer of more than 4 TLS handshakes',
  });
  expect(done()).toBeLessThan(6);
});

/** Ciphers of which the server makes up the group for the keys, signed with RSA and with DSA (RFC 5288, 5246, 6655, 7905, 6209). */
const GROUP_OF_THE_SERVER = new Set([
  ...[0x0033, 0x0039, 0x0067, 0x006b, 0x009e, 0x009f, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3, 0xccaa, 0xc052, 0xc053],
  ...[0x0032, 0x0038, 0x0040, 0x006a, 0x00a2, 0x00a3, 0xc056, 0xc057],
]);

/** The numbers of the ciphers in a ClientHello (RFC 5246 §7.4.1.2), which comes in one record. */
function ciphersIn(hello: Buffer): number[] {
  const session = 5 + 4 + 2 + 32;
  const at = session + 1 + hello.readUInt8(session);
  return Array.from({ length: hello.readUInt16BE(at) / 2 }, (_, n) => hello.readUInt16BE(at + 2 + 2 * n));
}

async function helloOf(call: (port: number) => unknown): Promise<number[]> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const { port } = await listening((socket) =>
    socket.once('data', (hello: Buffer) => {
      socket.destroy();
      resolve(hello);
    }),
  );
  await Promise.all([promise, call(port)]);
  return ciphersIn(await promise);
}

test('no key exchange is offered of which the server chooses the size', async () => {
  const usually = await helloOf((port) => {
    const socket = connect({ port, host: '127.0.0.1' });
    return new Promise((resolve) => socket.on('error', resolve));
  });
  expect(usually.filter((one) => GROUP_OF_THE_SERVER.has(one))).not.toEqual([]);
  const offered = await helloOf(callTo);
  expect(offered.filter((one) => GROUP_OF_THE_SERVER.has(one))).toEqual([]);
  // and all others as usual
  expect(offered).toEqual(usually.filter((one) => !GROUP_OF_THE_SERVER.has(one)));
});
