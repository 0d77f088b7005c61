// What a merchant's host may ask of the TLS here: each handshake is computed in the process that watches the chains.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectPlainly, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';
import { connect, createServer, getCACertificates, setDefaultCACertificates, type TLSSocket, type TlsOptions } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundRequest, OutboundResult } from '../../src/core/outbound.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { chainOf, chainServer, rsaKey } from './dear-server.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();
const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

function callTo(port: number, bounds: Partial<OutboundRequest> = {}): Promise<OutboundResult> {
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  return opened(createOutbound(policy)).call({ ...asking, ...bounds, url: `https://localhost:${port}/` });
}

/** A TLS server, and what it does with each connection that brought something. @returns its port */
async function securely(options: TlsOptions, onData: (socket: TLSSocket) => void): Promise<number> {
  const server = createServer({ key: own.key, cert: own.certificate, ...options }, (socket) => {
    socket.on('error', () => undefined).once('data', () => onData(socket));
    closing.push(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
const take = (socket: TLSSocket): void => void socket.end('HTTP/1.1 204 No Content\r\n\r\n');

/** Certificates of this many characters or a little more, the one that is trusted first; the others are of nobody. */
function longChain(length: number): string {
  const { cert } = chainOf([rsaKey(1024, 3)]);
  const certificate = cert.slice(cert.lastIndexOf('-----BEGIN'));
  return own.certificate + certificate.repeat(Math.ceil((length - own.certificate.length) / certificate.length));
}

test.each([
  // PEM takes four characters for three bytes
  ['long', 26_000, { kind: 'answered', status: 204 }],
  ['longer than any', 40_000, { kind: 'failed', failure: 'tls_failed', reason: 'ERR_TLS_HANDSHAKE_TOO_LONG' }],
])('a server whose certificates are %s', async (_, length, expected) => {
  expect(await callTo(await securely({ cert: longChain(length) }, take))).toMatchObject(expected);
});

/** Passes on to this port, and what that says in pieces of so many bytes, each of them by itself. @returns its own port */
async function inPieces(port: number, size: number): Promise<number> {
  const { port: own } = await listening((socket) => {
    const server = connectPlainly(port, '127.0.0.1').on('error', () => undefined);
    closing.push(() => server.destroy());
    socket.setNoDelay().pipe(server);
    void pass(server, socket).catch(() => undefined);
  });
  return own;
  async function pass(server: Socket, socket: Socket): Promise<void> {
    for await (const bytes of server as AsyncIterable<Buffer>)
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.subarray(at, at + size));
        await immediate();
      }
    socket.end();
  }
}

test.each([1, 3, 100])('what a server says in pieces of %d bytes is read like any other', async (size) => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    for (const body of ['x', 'xy']) {
      const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      // it stays, so nothing but its last byte ends the answer
      const usual = await securely({ maxVersion, cert: longChain(3_000) }, (socket) => socket.write(answer));
      expect(await callTo(await inPieces(usual, size))).toMatchObject({ kind: 'answered', status: 200, isCut: false });
    }
    const unusual = await chainServer(chainOf([rsaKey(1026, 3)]), maxVersion);
    const reason = 'ERR_TLS_HANDSHAKE_UNUSUAL';
    expect(await callTo(await inPieces(unusual.port, size))).toMatchObject({ failure: 'tls_failed', reason });
  }
});

test('what comes after the handshake is an answer, however long', async () => {
  const long = `HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n${'x'.repeat(60_000)}`;
  const port = await securely({}, (socket) => socket.write(long));
  const answer = await callTo(port, { mostBytes: 64 * 1024 });
  expect(answer).toMatchObject({ kind: 'answered', status: 200, isCut: false });
  expect(answer.kind === 'answered' && answer.body.length).toBe(60_000);
});

test('a server that asks for another handshake gets none', async () => {
  let done = 0;
  const port = await securely({ maxVersion: 'TLSv1.2' }, (socket) =>
    socket.renegotiate({}, (error) => {
      if (error === null) done++;
      take(socket);
    }),
  );
  expect(await callTo(port, { withinMs: 1_000 })).toMatchObject({ kind: 'failed' });
  expect(done).toBe(0);
});

/** A TLS server that changes its keys so many times before it takes what it got. */
const CHANGES_KEYS = `
import ctypes, socket, sys
try:
    tls = ctypes.CDLL('libssl.so.3')
except OSError:
    sys.exit(1)
if len(sys.argv) == 1:
    sys.exit(0)
pointer = ctypes.c_void_p
for name in ('TLS_server_method', 'SSL_CTX_new', 'SSL_new'):
    getattr(tls, name).restype = pointer
context = pointer(tls.SSL_CTX_new(pointer(tls.TLS_server_method())))
file = sys.argv[1].encode()
tls.SSL_CTX_use_certificate_chain_file(context, file)
tls.SSL_CTX_use_PrivateKey_file(context, file, 1)
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
one, _ = server.accept()
session = pointer(tls.SSL_new(context))
tls.SSL_set_fd(session, one.fileno())
tls.SSL_accept(session)
tls.SSL_read(session, ctypes.create_string_buffer(65536), 65536)
for _ in range(int(sys.argv[2])):
    tls.SSL_key_update(session, 0)
    if tls.SSL_do_handshake(session) != 1:
        break
taken = b'HTTP/1.1 204 No Content\\r\\n\\r\\n'
tls.SSL_write(session, taken, len(taken))
one.recv(1)
`;

test.skipIf(spawnSync('python3', ['-c', CHANGES_KEYS]).status !== 0).each([
  ['a few times is heard', 100, { kind: 'answered', status: 204 }],
  ['very often is cut off', 1_000, { kind: 'failed', reason: 'an answer of more than 320 TLS records' }],
  ['without end is cut off', 40_000, { kind: 'failed', failure: 'malformed_answer' }],
])('a server that changes its keys %s', async (_, times, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'));
  const file = join(folder, 'certificate.pem');
  writeFileSync(file, `${own.key}${own.certificate}`);
  const server = spawn('python3', ['-c', CHANGES_KEYS, file, String(times)], { stdio: ['ignore', 'pipe', 'inherit'] });
  closing.push(() => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  const port = Number(String((await once(server.stdout, 'data'))[0]));
  expect(await callTo(port)).toMatchObject(expected);
});

/** A server that asks so often to be greeted, which a client passes over, each in a record of its own, and says nothing else. */
async function greeted(times: number): Promise<OutboundResult> {
  const { port } = await listening((socket) => void socket.end(Buffer.from('160303000400000000'.repeat(times), 'hex')));
  return callTo(port);
}

test('a handshake in more than 256 records is no ordinary one', async () => {
  const unusual = { kind: 'failed', failure: 'tls_failed', reason: 'ERR_TLS_HANDSHAKE_UNUSUAL' };
  expect(await greeted(256)).not.toMatchObject(unusual);
  expect(await greeted(257)).toMatchObject(unusual);
});

test('a connection on which a handshake was too long is closed', async () => {
  const closed = Promise.withResolvers<void>();
  const { port } = await listening((socket) => {
    socket.on('close', () => closed.resolve()).resume();
    // the head of a record, and more bytes than a handshake may have
    socket.write(Buffer.concat([Buffer.from([22, 3, 3, 0x40, 0]), Buffer.alloc(30_000)]));
  });
  expect(await callTo(port)).toMatchObject({ kind: 'failed', failure: 'tls_failed' });
  await closed.promise;
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

async function helloOf(call: (port: number) => unknown): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const { port } = await listening((socket) =>
    socket.once('data', (hello: Buffer) => {
      socket.destroy();
      resolve(hello);
    }),
  );
  await Promise.all([promise, call(port)]);
  return promise;
}

test('no key exchange is offered of which the server chooses the size', async () => {
  const usual = await helloOf((port) => {
    const socket = connect({ port, host: '127.0.0.1' });
    return new Promise((resolve) => socket.on('error', resolve));
  });
  const usually = ciphersIn(usual);
  expect(usually.filter((one) => GROUP_OF_THE_SERVER.has(one))).not.toEqual([]);
  const offered = ciphersIn(await helloOf((port) => callTo(port)));
  expect(offered.filter((one) => GROUP_OF_THE_SERVER.has(one))).toEqual([]);
  // and all others as usual
  expect(offered).toEqual(usually.filter((one) => !GROUP_OF_THE_SERVER.has(one)));
});

/** Compressed certificates (RFC 8879), and keys without one (RFC 7250): those would not be looked at. */
const OTHER_CERTIFICATES = [27, 20];

function extensionsIn(hello: Buffer): number[] {
  const session = 5 + 4 + 2 + 32;
  const ciphers = session + 1 + hello.readUInt8(session);
  const methods = ciphers + 2 + hello.readUInt16BE(ciphers);
  const found: number[] = [];
  for (let at = methods + 1 + hello.readUInt8(methods) + 2; at < hello.length; at += 4 + hello.readUInt16BE(at + 2))
    found.push(hello.readUInt16BE(at));
  return found;
}

test('certificates are asked for as they are', async () => {
  const extensions = extensionsIn(await helloOf((port) => callTo(port)));
  const [NAME, VERSIONS] = [0, 43];
  expect(extensions).toEqual(expect.arrayContaining([NAME, VERSIONS]));
  expect(extensions.filter((one) => OTHER_CERTIFICATES.includes(one))).toEqual([]);
});
