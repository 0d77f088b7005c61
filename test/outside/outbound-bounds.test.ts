// How much an answer may be: whoever is called chooses it, and all that it says is work of the process that watches the chains.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE, publicInternet } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();
const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

const saysAll = [{ first: 200, last: 299 }];
const mostBytes = 64 * 1024;
const EMPTY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const CHUNKED = 'transfer-encoding: chunked\r\n\r\n';

async function answerTo(bytes: string): Promise<OutboundResult> {
  const { port } = await listening((socket) => socket.once('data', () => socket.write(bytes)));
  return opened(createOutbound(ANYWHERE)).call({ ...asking, mostBytes, saysAll, url: `http://127.0.0.1:${port}/` });
}

const hints = (headers: number, times: number) => `HTTP/1.1 103 Early Hints\r\n${'a:b\r\n'.repeat(headers)}\r\n`.repeat(times);

test('a few interim answers with many headers are passed over', async () => {
  expect(await answerTo(`${hints(50, 4)}${EMPTY}`)).toMatchObject({ kind: 'answered', status: 200 });
});

test.each([
  ['very many headers', hints(2_000, 90)],
  ['one long header', `HTTP/1.1 103 Early Hints\r\nx: ${'y'.repeat(10_000)}\r\n\r\n`.repeat(2)],
  ['none', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2_000)],
])('interim answers without end with %s are not', async (_, interim) => {
  expect(await answerTo(`${interim}${EMPTY}`)).toMatchObject({ kind: 'failed', failure: 'malformed_answer' });
});

test('a body in chunks of a byte is left soon, and counts by its status', async () => {
  const bytes = (status: string) => `HTTP/1.1 ${status}\r\n${CHUNKED}${'1\r\nx\r\n'.repeat(30_000)}0\r\n\r\n`;
  const taken = await answerTo(bytes('200 OK'));
  expect(taken).toMatchObject({ kind: 'answered', status: 200, isCut: true });
  expect(taken.kind === 'answered' && taken.body.length).toBeLessThan(3_000);
  expect(await answerTo(bytes('500 No'))).toMatchObject({ kind: 'failed', failure: 'malformed_answer' });
});

test.each([
  ['a head', (lines: number) => `HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(lines - 3)}content-length: 0\r\n\r\n`],
  ['interim heads and the last', (lines: number) => `HTTP/1.1 103 Hints\r\n${'a:\r\n'.repeat(lines - 5)}\r\n${EMPTY}`],
])('%s may have 256 lines', async (_, head) => {
  expect(await answerTo(head(256))).toMatchObject({ kind: 'answered', status: 200 });
  const failed = { kind: 'failed', failure: 'malformed_answer', reason: 'an answer of more than 256 lines in its head' };
  expect(await answerTo(head(257))).toMatchObject(failed);
});

test('the lines of a body are none of its head, however they come', async () => {
  const { port } = await listening((socket) => {
    socket.setNoDelay().once('data', () => {
      socket.write('HTTP/1.1 500 No\r\ncontent-length: 300\r\n\r');
      setImmediate(() => socket.write(`\n${'\n'.repeat(300)}`));
    });
  });
  const result = await opened(createOutbound(ANYWHERE)).call({ ...asking, url: `http://127.0.0.1:${port}/` });
  expect(result).toMatchObject({ kind: 'answered', status: 500, isCut: false });
  expect(result.kind === 'answered' && result.body.length).toBe(300);
});

test('an error page of many lines is read to its bound', async () => {
  const page = '<p>an error, and where it was</p>\n'.repeat(50_000);
  const result = await answerTo(`HTTP/1.1 500 No\r\ncontent-length: ${page.length}\r\n\r\n${page}`);
  expect(result).toMatchObject({ kind: 'answered', status: 500, isCut: true });
  expect(result.kind === 'answered' && result.body.length).toBe(mostBytes);
});

test('a name with more addresses than any host has is refused before a connection', async () => {
  const { port, connections } = await listening((socket) => socket.once('data', () => socket.write(EMPTY)));
  const callTo = (count: number) => {
    const find = async () => Array.from({ length: count }, () => ({ address: '127.0.0.1', family: 4 }));
    const outbound = opened(createOutbound({ ...ANYWHERE, find }));
    const url = `http://shop.example:${port}/`;
    return Promise.all([outbound.call({ ...asking, url }), outbound.addressProblemOf(url)]);
  };
  expect(await callTo(32)).toMatchObject([{ kind: 'answered', status: 200 }, null]);
  expect(await callTo(33)).toMatchObject([
    { kind: 'failed', failure: 'address_not_allowed', reason: 'shop.example has 33 addresses, more than 32' },
    'a URL whose host has at most 32 addresses',
  ]);
  expect(connections()).toBe(1);
});

/** A TLS server that answers a head in one record and each byte of its body in another one. */
const BYTE_BY_BYTE = `
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
length = int(sys.argv[3])
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
while True:
    try:
        one, _ = server.accept()
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(coming, going, server_side=True)
        def waited(what):
            while True:
                try:
                    return what()
                except ssl.SSLWantReadError:
                    one.sendall(going.read())
                    coming.write(one.recv(65536))
        waited(tls.do_handshake)
        waited(lambda: tls.read(65536))
        tls.write(b'HTTP/1.1 %s\\r\\ncontent-length: %d\\r\\n\\r\\n' % (sys.argv[2].encode(), length))
        for _ in range(length):
            tls.write(b'x')
        one.sendall(going.read())
    except OSError:
        pass
`;

async function inRecords(status: string, length: number): Promise<OutboundResult> {
  const folder = mkdtempSync(join(tmpdir(), 'records-'));
  const file = join(folder, 'certificate.pem');
  writeFileSync(file, `${own.key}${own.certificate}`);
  const server = spawn('python3', ['-c', BYTE_BY_BYTE, file, status, String(length)], { stdio: ['ignore', 'pipe', 'inherit'] });
  closing.push(() => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  const port = Number(String((await once(server.stdout, 'data'))[0]));
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  return opened(createOutbound(policy)).call({ ...asking, mostBytes, saysAll, url: `https://localhost:${port}/` });
}

test.skipIf(spawnSync('python3', ['--version']).status !== 0).each([
  ['a few', '500 No', 100, { kind: 'answered', status: 500, isCut: false }],
  ['very many', '500 No', 30_000, { kind: 'failed', failure: 'malformed_answer' }],
  ['very many', '200 OK', 30_000, { kind: 'answered', status: 200, isCut: true }],
])('%s TLS records of a byte each, status %s', async (_, status, length, expected) => {
  expect(await inRecords(status, length)).toMatchObject(expected);
});
