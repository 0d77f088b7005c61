// What the certificates of a server may be: OpenSSL takes the key of each apart as soon as it has read it, whoever made it.
import { createECDH, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { getCACertificates, type SecureVersion, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import {
  type Chain,
  certificateForNetworks,
  certificateOfIssuer,
  certificateWithLists,
  certificateWithMailboxes,
  certificateWithNames,
  chainOf,
  chainServer,
  dearCurve,
  dearKey,
  keyOn,
  P256_CURVE,
  rsaKey,
} from './dear-server.ts';
import { asking, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();
const own = selfSignedCertificate();
const usual = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...usual, own.certificate]));
afterAll(() => setDefaultCACertificates(usual));

const UNUSUAL = { kind: 'failed', failure: 'tls_failed', reason: 'ERR_TLS_HANDSHAKE_UNUSUAL' };
const HEARD = { kind: 'answered', status: 204 };

function callTo(port: number): Promise<OutboundResult> {
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  return opened(createOutbound(policy)).call({ ...asking, url: `https://localhost:${port}/` });
}
/** The first one is trusted: what comes after it is needed by nobody. */
function chainWith(keys: readonly Buffer[]): Chain {
  const [, ...others] = chainOf(keys).cert.split(/(?=-----BEGIN)/);
  return { key: own.key, cert: own.certificate + others.join('') };
}
async function calling(keys: readonly Buffer[], maxVersion: SecureVersion = 'TLSv1.3', ciphers = 'DEFAULT') {
  return callTo((await chainServer(chainWith(keys), maxVersion, ciphers)).port);
}
const spki = ({ publicKey }: { publicKey: KeyObject }): Buffer => publicKey.export({ type: 'spki', format: 'der' });
const curve = (name: string): Buffer => spki(generateKeyPairSync('ec', { namedCurve: name }));

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a key on a curve that the server made up is not computed with (%s)',
  async (version) => {
    // what the first call of a process takes is no certificate's
    expect(await calling([], version)).toMatchObject(HEARD);
    // the server, of which nothing else is in this thread, takes it apart too
    const { port } = await chainServer(chainWith([keyOn(dearCurve())]), version);
    const before = process.threadCpuUsage();
    expect(await callTo(port)).toMatchObject(UNUSUAL);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(200);
  },
);

test.each(['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'])(
  'certificates are read with %s',
  async (suite) => {
    expect(await calling([], 'TLSv1.3', `${suite}:DEFAULT`)).toMatchObject(HEARD);
    expect(await calling([curve('sect571r1')], 'TLSv1.3', `${suite}:DEFAULT`)).toMatchObject(UNUSUAL);
  },
);

test.each([
  ['P-256', curve('P-256')],
  ['P-384', curve('P-384')],
  ['P-521', curve('P-521')],
  ['RSA', spki(generateKeyPairSync('rsa', { modulusLength: 2048 }))],
  ['RSA-PSS', spki(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }))],
  ['RSA, as long as any', rsaKey(1024, 8)],
  ['Ed25519', spki(generateKeyPairSync('ed25519'))],
  ['Ed448', spki(generateKeyPairSync('ed448'))],
])('keys of %s are usual', async (_, key) => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) expect(await calling([key, key], version)).toMatchObject(HEARD);
});

test.each([
  ['on another curve', () => curve('secp256k1')],
  ['on a curve that is written out', () => spki(generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' }))],
  ['of which half is to be found', () => keyOn(P256_CURVE, half())],
  ['of RSA that is longer than any', () => rsaKey(1026, 3)],
  ['of RSA whose exponent is as long as its modulus', dearKey],
  ['of DSA', () => spki(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }))],
])('a key %s is not', async (_, key) => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    expect(await calling([curve('P-256'), key()], version)).toMatchObject(UNUSUAL);
});
function half(): Buffer {
  const key = createECDH('prime256v1');
  key.generateKeys();
  return key.getPublicKey(null, 'compressed');
}

test('16 certificates are a chain, more are none', async () => {
  const key = curve('P-256');
  expect(await calling(Array.from({ length: 15 }, () => key))).toMatchObject(HEARD);
  expect(await calling(Array.from({ length: 16 }, () => key))).toMatchObject(UNUSUAL);
});

/** The first one is trusted, whatever comes with it. */
async function callingWith(certificate: string, version: SecureVersion): Promise<OutboundResult> {
  return callTo((await chainServer({ key: own.key, cert: own.certificate + certificate }, version)).port);
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'places of revocation lists have names of their own, not each a part of a long one (%s)',
  async (version) => {
    expect(await callingWith(certificateWithLists('whole', 50, 50), version)).toMatchObject(HEARD);
    expect(await callingWith(certificateWithLists('part', 1, 1), version)).toMatchObject(UNUSUAL);
    expect(await callingWith(certificateWithLists('part', 1_000, 1_000), version)).toMatchObject(UNUSUAL);
  },
);

test.each(['TLSv1.2', 'TLSv1.3'] as const)('65,536 comparisons of names with constraints are the most (%s)', async (version) => {
  // the first certificate has four names
  expect(await callingWith(certificateWithNames(252, 256), version)).toMatchObject(HEARD);
  expect(await callingWith(certificateWithNames(253, 256), version)).toMatchObject(UNUSUAL);
});

test('a name of a mailbox is as sixteen of them', async () => {
  // the first certificate has four names, and this one its subject
  expect(await callingWith(certificateWithMailboxes(252, 16), 'TLSv1.3')).toMatchObject(HEARD);
  expect(await callingWith(certificateWithMailboxes(257, 16), 'TLSv1.3')).toMatchObject(UNUSUAL);
});

test.each(['addresses', 'number'] as const)('a server has no certificate for networks (%s)', async (of) => {
  expect(await callingWith(certificateForNetworks(of), 'TLSv1.3')).toMatchObject(UNUSUAL);
});

/** Each takes memory as long as the connection is there: 11,000 names of two bytes are 2 MB. */
test.each([
  ['other names', (parts: number) => certificateWithNames(parts, 1)],
  ['the name of the issuer', (parts: number) => certificateWithLists('whole', 1, Math.floor(parts / 3))],
  ['the name of the issuer beside its key', (parts: number) => certificateOfIssuer(Math.floor(parts / 3))],
])('certificates consist of at most 3,000 parts: %s', async (_, certificate) => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    expect(await callingWith(certificate(2_900), version)).toMatchObject(HEARD);
    expect(await callingWith(certificate(3_000), version)).toMatchObject(UNUSUAL);
  }
});

test.each(['end', 'write'] as const)(
  'what is no TLS is named as TLS does, whether or not its server goes on (%s)',
  async (how) => {
    const { port } = await listening((socket) => void socket[how]('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await callTo(port)).toMatchObject({ failure: 'tls_failed', reason: 'ERR_SSL_WRONG_VERSION_NUMBER' });
  },
);
