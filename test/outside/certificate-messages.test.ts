// What is read of a Certificate message before OpenSSL computes with it, with what no server of a library sends.
import { generateKeyPairSync } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { unusualCertificates } from '../../src/outside/outbound/certificates.ts';
import { certificateWithBothLists, certificateWithLists, chainOf } from './dear-server.ts';

const derOf = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
const USUAL = derOf(certificateWithLists('whole', 1, 1));
const [, second = ''] = chainOf([
  generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ type: 'spki', format: 'der' }),
]).cert.split(/(?=-----BEGIN)/);
const UNUSUAL = derOf(second);

function counted(bytesOfLength: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(bytesOfLength);
  length.writeUIntBE(body.length, 0, bytesOfLength);
  return Buffer.concat([length, body]);
}
type Sent = { readonly der: Buffer; readonly extensions?: Buffer };
/** RFC 8446 §4.4.2 */
const tls13 = (sent: readonly Sent[], context = Buffer.alloc(0)): Buffer =>
  Buffer.concat([
    counted(1, context),
    counted(3, ...sent.flatMap(({ der, extensions = Buffer.alloc(0) }) => [counted(3, der), counted(2, extensions)])),
  ]);
/** RFC 5246 §7.4.2 */
const tls12 = (sent: readonly Sent[]): Buffer => counted(3, ...sent.map(({ der }) => counted(3, der)));

test('the certificates of every CA that browsers trust are usual', () => {
  for (const pem of rootCertificates) {
    const sent = [{ der: derOf(pem) }];
    expect([unusualCertificates(tls13(sent), true), unusualCertificates(tls12(sent), false), pem]).toEqual([null, null, pem]);
  }
});

test.each([0, 1, 32, 255])('a context of %d bytes comes before them in TLS 1.3', (length) => {
  const context = Buffer.alloc(length, 7);
  expect(unusualCertificates(tls13([{ der: USUAL }], context), true)).toBeNull();
  expect(unusualCertificates(tls13([{ der: UNUSUAL }], context), true)).toBe('a certificate with an unusual key');
});

test.each([0, 1, 5, 2_000])('what TLS 1.3 says of each certificate, in %d bytes, is passed over', (length) => {
  const extensions = Buffer.alloc(length, 7);
  const [usual, unusual] = [USUAL, UNUSUAL].map((der) => ({ der, extensions })) as [Sent, Sent];
  expect(unusualCertificates(tls13([usual, usual]), true)).toBeNull();
  expect(unusualCertificates(tls13([usual, unusual]), true)).toBe('a certificate with an unusual key');
  expect(unusualCertificates(tls12([usual, unusual]), false)).toBe('a certificate with an unusual key');
});

test('a single place of a revocation list that is part of a name is enough, also where it says more', () => {
  expect(unusualCertificates(tls12([{ der: derOf(certificateWithBothLists()) }]), false)).toBe(
    'a certificate with part of a name for its revocation list',
  );
});

test('what ends too early, at any byte, is malformed', () => {
  const whole = tls12([{ der: USUAL }]);
  for (let length = 0; length < whole.length; length++)
    expect(unusualCertificates(whole.subarray(0, length), false)).toBe('a malformed certificate');
  for (let length = 0; length < USUAL.length; length++)
    expect(unusualCertificates(tls12([{ der: USUAL.subarray(0, length) }]), false)).toBe('a malformed certificate');
});
