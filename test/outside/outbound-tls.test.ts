// Webhooks over TLS: a host with a certificate for its name gets them, signed, on connections that are kept; where the certificate is for
// another name, or of nobody who is trusted, the call ends before anything of it is told.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { createWebhookSender } from '../../src/outside/webhooks/sender.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { isSignedBy } from '../support/webhook-receiver.ts';
import { closing, opened, outboundServersForEach } from './outbound-servers.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const IDS = ['evt_t1', 'evt_t2', 'evt_t3', 'evt_t4', 'evt_t5', 'evt_t6'];
/** The name in both certificates. */
const CERTIFIED = 'localhost';
const trusted = selfSignedCertificate();
const untrusted = selfSignedCertificate();
const usual = getCACertificates('default');
// as the machine's own list of authorities would have it
beforeAll(() => setDefaultCACertificates([...usual, trusted.certificate]));
afterAll(() => setDefaultCACertificates(usual));

type Got = {
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly servername: string | undefined;
  readonly version: string;
};

/** A merchant's server behind this name, and what sends webhooks there. */
async function shopAt(host: string, { key, certificate }: ReturnType<typeof selfSignedCertificate>) {
  const got: Got[] = [];
  let connections = 0;
  const sockets = new Set<Socket>();
  // it would speak HTTP/2 with whoever offers that
  const server = createSecureServer({ key, cert: certificate, allowHTTP1: true });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    const { servername } = request.socket as TLSSocket & { readonly servername?: string };
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      got.push({ headers: request.headers, text: Buffer.concat(parts).toString(), servername, version: request.httpVersion });
      response.writeHead(200).end('thanks');
    });
  });
  server.on('secureConnection', () => {
    connections += 1;
  });
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // every name leads here, and loopback counts as the internet
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  const send = createWebhookSender(opened(createOutbound(policy)));
  const deliver = (id: string) => {
    const request = {
      webhook: 'wh_1',
      merchantId: 1n,
      url: `https://${host}:${port}/hooks`,
      id,
      body: `{"id":"${id}"}`,
      secrets: [SECRET],
    };
    return send({ ...request, signal: new AbortController().signal });
  };
  return { got, deliver, connections: () => connections };
}

test('a host with a certificate for its name gets what is signed, on connections that are kept', async () => {
  const { got, deliver, connections } = await shopAt(CERTIFIED, trusted);
  for (const id of IDS) {
    const result = await deliver(id);
    expect(result).toMatchObject({ kind: 'answered', status: 200 });
    expect(result.kind === 'answered' && Buffer.from(result.body).toString()).toBe('thanks');
  }
  expect(got.map(({ text, servername, version }) => [text, servername, version])).toEqual(
    IDS.map((id) => [`{"id":"${id}"}`, CERTIFIED, '1.1']),
  );
  for (const each of got) expect(isSignedBy({ ...each, body: null }, SECRET)).toBe(true);
  expect(connections()).toBeLessThan(IDS.length);
});

test.each([
  ['for another name', 'shop.example', trusted],
  ['of nobody who is trusted', CERTIFIED, untrusted],
])('a certificate %s ends the call, and nothing is told', async (_what, host, certificate) => {
  const { got, deliver } = await shopAt(host, certificate);
  expect(await deliver('evt_t1')).toMatchObject({ kind: 'failed', failure: 'tls_failed' });
  expect(got).toEqual([]);
});

/** A server that sends so many tickets for later sessions after each handshake, and takes what it gets. */
const SENDS_TICKETS = `
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
context.num_tickets = int(sys.argv[2])
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
while True:
    try:
        with context.wrap_socket(server.accept()[0], server_side=True) as one:
            while one.recv(65536):
                one.sendall(b'HTTP/1.1 204 No Content\\r\\n\\r\\n')
    except OSError:
        pass
`;

outboundServersForEach();

test.skipIf(spawnSync('python3', ['--version']).status !== 0).each([
  ['a few', 'heard', 8, { kind: 'answered', status: 204 }],
  ['no end of', 'cut off', 3_000_000, { kind: 'failed', failure: 'malformed_answer' }],
])('a server that sends %s tickets for later sessions is %s', async (_many, _what, tickets, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'tickets-'));
  const file = join(folder, 'certificate.pem');
  writeFileSync(file, `${trusted.key}${trusted.certificate}`);
  const server = spawn('python3', ['-c', SENDS_TICKETS, file, String(tickets)], { stdio: ['ignore', 'pipe', 'inherit'] });
  closing.push(() => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  const port = Number(String((await once(server.stdout, 'data'))[0]));
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  const send = createWebhookSender(opened(createOutbound(policy)));
  const request = {
    webhook: 'wh_1',
    merchantId: 1n,
    url: `https://${CERTIFIED}:${port}/hooks`,
    id: 'evt_t1',
    body: '{}',
    secrets: [SECRET],
  };
  expect(await send({ ...request, signal: new AbortController().signal })).toMatchObject(expected);
});
