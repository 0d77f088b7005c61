// A self-signed TLS certificate (X.509 v3, RFC 5280) for the simulated Lightning node, as LND makes one for itself at its first start.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const ORGANISATION = '55040a';
const SUBJECT_ALT_NAME = '551d11';
const BASIC_CONSTRAINTS = '551d13';

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length =
    body.length < 0x80 ? [body.length] : body.length < 0x100 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const octets = (bytes: Buffer): Buffer => der(0x04, bytes);
const bits = (bytes: Buffer): Buffer => der(0x03, Buffer.from([0]), bytes);
const integer = (bytes: Buffer): Buffer => der(0x02, bytes);
const generalizedTime = (text: string): Buffer => der(0x18, Buffer.from(text));
const name = (type: string, text: string): Buffer => der(0x31, sequence(oid(type), der(0x0c, Buffer.from(text))));
const extension = (type: string, value: Buffer): Buffer => sequence(oid(type), octets(value));

/**
 * @param until when it expires, as X.509 writes it; absent: not in this century
 * @returns key and certificate as PEM; the certificate is for 127.0.0.1 and localhost
 */
export function selfSignedCertificate(until = '20991231235959Z'): { readonly key: string; readonly certificate: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid(ECDSA_WITH_SHA256));
  const subject = sequence(name(ORGANISATION, 'Bursar sandbox'), name(COMMON_NAME, 'localhost'));
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const isAuthority = sequence(der(0x01, Buffer.from([0xff])));
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    subject,
    sequence(generalizedTime('20200101000000Z'), generalizedTime(until)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension(SUBJECT_ALT_NAME, names), extension(BASIC_CONSTRAINTS, isAuthority))),
  );
  const certificate = sequence(body, algorithm, bits(sign('sha256', body, privateKey)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}
