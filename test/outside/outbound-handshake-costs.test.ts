// What the certificates of a merchant's host cost here: their signatures are checked in one piece, in the process that watches the chains.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { handshakeCosts } from '../../src/outside/outbound/handshake-costs.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { asking, closing, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}
const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const named = (text: string): Buffer => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(text)))));
const time = (text: string): Buffer => der(0x17, Buffer.from(text));
const ECDSA_WITH_SHA512 = sequence(oid('2a8648ce3d040304'));

/** A chain of nobody: 50 certificates, each with a key of 571 bits that the one before is signed with, as if. */
function dearChain(): { readonly key: string; readonly cert: string } {
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const dear = generateKeyPairSync('ec', { namedCurve: 'sect571r1' });
  const signature = der(0x03, Buffer.from([0]), sign('sha512', Buffer.from('something else'), dear.privateKey));
  function certificate(subject: string, issuer: string, key: KeyObject): string {
    const validity = sequence(time('200101000000Z'), time('491231235959Z'));
    const keyInfo = key.export({ type: 'spki', format: 'der' });
    const body = sequence(der(0x02, Buffer.from([1])), ECDSA_WITH_SHA512, named(issuer), validity, named(subject), keyInfo);
    const base64 = sequence(body, ECDSA_WITH_SHA512, signature).toString('base64');
    return `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  }
  const issuers = Array.from({ length: 50 }, (_, n) => certificate(String(n), String(n + 1), dear.publicKey));
  return {
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: certificate('localhost', '0', leaf.publicKey) + issuers.join(''),
  };
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)('certificates that take long to check are checked once (%s)', async (maxVersion) => {
  let connections = 0;
  const server = createServer({ ...dearChain(), maxVersion, ciphers: 'DEFAULT:@SECLEVEL=0' }, (socket) => {
    closing.push(() => socket.destroy());
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined).on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  const outbound = opened(createOutbound(policy));
  const call = (n: number): Promise<OutboundResult> =>
    outbound.call({ ...asking, connectionsOf: `wh_${n}`, url: `https://localhost:${port}/` });

  const atOnce = await Promise.all([call(1), call(2), call(3), call(4)]);
  expect(atOnce.map((result) => (result.kind === 'failed' ? result.reason : '')).toSorted()).toEqual([
    'CERT_SIGNATURE_FAILURE',
    ...Array.from({ length: 3 }, () => 'ERR_TLS_HANDSHAKE_TOO_DEAR'),
  ]);
  const before = connections;
  expect(await call(5)).toMatchObject({ kind: 'failed', failure: 'tls_failed', reason: 'ERR_TLS_HANDSHAKE_TOO_DEAR' });
  expect(connections).toBe(before);
});

/** Costs by clocks that the test moves. */
function costs() {
  let [cpu, now] = [0, 0];
  const handshakeWith = handshakeCosts({ cpuMs: () => cpu, nowMs: () => now });
  return {
    handshakeWith,
    taking: (ms: number) => (): void => {
      cpu += ms;
    },
    pass(ms: number): void {
      now += ms;
    },
  };
}

test('a host rests a thousand times as long as it was computed with, and no other does', () => {
  const { handshakeWith, taking, pass } = costs();
  const first = handshakeWith('one.example:443');
  const underWay = handshakeWith('one.example:443');
  first.compute(taking(19));
  expect(underWay.isRefused()).toBe(false);
  first.compute(taking(20));
  // it ends by itself
  expect(first.isRefused()).toBe(false);
  expect(underWay.isRefused()).toBe(true);
  expect(handshakeWith('one.example:8443').isRefused()).toBe(false);
  pass(19_999);
  expect(handshakeWith('one.example:443').isRefused()).toBe(true);
  pass(1);
  expect(handshakeWith('one.example:443').isRefused()).toBe(false);
});

test.each([
  ['in the part that it ended with', true],
  ['before that', false],
])('whoever is trusted may take as long as it does: %s', (_, isLast) => {
  const { handshakeWith, taking } = costs();
  const trusted = handshakeWith('one.example:443');
  trusted.compute(() => {
    taking(500)();
    if (isLast) trusted.end();
  });
  expect(handshakeWith('one.example:443').isRefused()).toBe(!isLast);
  trusted.end();
  expect(handshakeWith('one.example:443').isRefused()).toBe(false);
});

test('a trusted handshake ends the rest of no other', () => {
  const { handshakeWith, taking } = costs();
  const [trusted, other] = [handshakeWith('one.example:443'), handshakeWith('one.example:443')];
  trusted.compute(taking(500));
  other.compute(taking(30));
  trusted.end();
  expect(handshakeWith('one.example:443').isRefused()).toBe(true);
});

test('at most 10,000 hosts rest', () => {
  const { handshakeWith, taking } = costs();
  for (let n = 0; n <= 10_000; n++) handshakeWith(`${n}.example:443`).compute(taking(50));
  expect(handshakeWith('0.example:443').isRefused()).toBe(false);
  expect(handshakeWith('1.example:443').isRefused()).toBe(true);
});
