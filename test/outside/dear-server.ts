// A TLS server and its certificates: such as take long to check, or are of any other kind.
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type SecureVersion } from 'node:tls';
import { closing } from './outbound-servers.ts';

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
const integer = (bytes: Buffer): Buffer => der(0x02, Buffer.from([0]), bytes);
const bits = (bytes: Buffer): Buffer => der(0x03, Buffer.from([0]), bytes);
const SHA256_WITH_RSA = sequence(oid('2a864886f70d01010b'), der(0x05));
const SHA512_WITH_EC = sequence(oid('2a8648ce3d040304'));
const P256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const RSA_BYTES = 3072 / 8;

/** How certificates are signed, here with what is no signature of them. */
type Signed = { readonly algorithm: Buffer; readonly signature: Buffer };
const WITH_RSA: Signed = { algorithm: SHA256_WITH_RSA, signature: Buffer.alloc(RSA_BYTES, 0x55) };
type Certificate = {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly key: Buffer;
  readonly extensions?: readonly Buffer[];
};

function certificateOf({ issuer, subject, key, extensions = [] }: Certificate, { algorithm, signature }: Signed): string {
  const validity = sequence(time('200101000000Z'), time('491231235959Z'));
  const [version, serial] = [der(0xa0, der(0x02, Buffer.from([2]))), der(0x02, Buffer.from([1]))];
  const rest = extensions.length === 0 ? [] : [der(0xa3, sequence(...extensions))];
  const body = sequence(version, serial, algorithm, issuer, validity, subject, key, ...rest);
  const base64 = sequence(body, algorithm, bits(signature)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
}
const ownKey = P256.publicKey.export({ type: 'spki', format: 'der' });

export type Chain = { readonly key: string; readonly cert: string };
/** For localhost, signed with nothing. @param keys subjectPublicKeyInfo of those after the first, each of which is the issuer of the one before */
export function chainOf(keys: readonly Buffer[], signed = WITH_RSA): Chain {
  const certificate = (subject: string, issuer: string, key: Buffer): string =>
    certificateOf({ issuer: named(issuer), subject: named(subject), key }, signed);
  return {
    key: P256.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: certificate('localhost', '0', ownKey) + keys.map((key, n) => certificate(String(n), String(n + 1), key)).join(''),
  };
}

const extension = (kind: string, value: Buffer): Buffer => sequence(oid(kind), der(0x04, value));
const placeOf = (kind: 'whole' | 'part'): Buffer =>
  der(0xa0, kind === 'whole' ? der(0xa0, der(0x86, Buffer.from('http://one.example/'))) : der(0xa1));
/** Places of revocation lists: each has a name of its own, or adds nothing to that of an issuer whose name has so many parts. */
export function certificateWithLists(kind: 'whole' | 'part', places: number, parts: number): string {
  return certificateWithPlaces(
    Array.from({ length: places }, () => sequence(placeOf(kind))),
    parts,
  );
}
/** One place with a name of its own and one without, and that one says for which reasons it has certificates. */
export const certificateWithBothLists = (): string =>
  certificateWithPlaces([sequence(placeOf('whole')), sequence(placeOf('part'), der(0x81, Buffer.from([0, 0x80])))], 1);
function certificateWithPlaces(places: readonly Buffer[], parts: number): string {
  const issuer = sequence(der(0x31, ...Array.from({ length: parts }, () => sequence(oid('2a'), der(0x0c)))));
  const extensions = [extension('551d1f', sequence(...places))];
  return certificateOf({ issuer, subject: named('0'), key: ownKey, extensions }, WITH_RSA);
}
const uri = (text: string): Buffer => der(0x86, Buffer.from(text));
/** Of a mailbox (RFC 8398). */
const mailbox = der(0xa0, oid('2b06010505070809'), der(0xa0, der(0x0c, Buffer.from('@a'))));
/** So many names, its subject among them, and constraints of names. */
export function certificateWithNames(names: number, constraints: number, name = uri('a://b')): string {
  const others = sequence(...Array.from({ length: names - 1 }, () => name));
  const excluded = sequence(der(0xa1, ...Array.from({ length: constraints }, () => sequence(uri('c')))));
  const critical = sequence(oid('551d1e'), der(0x01, Buffer.from([0xff])), der(0x04, excluded));
  const extensions = [extension('551d11', others), critical];
  return certificateOf({ issuer: named('1'), subject: named('0'), key: ownKey, extensions }, WITH_RSA);
}
export const certificateWithMailboxes = (names: number, constraints: number): string =>
  certificateWithNames(names, constraints, mailbox);
/** Its issuer is named there in so many parts. */
export function certificateOfIssuer(parts: number): string {
  const name = der(0xa4, sequence(der(0x31, ...Array.from({ length: parts }, () => sequence(oid('2a'), der(0x0c))))));
  const extensions = [extension('551d23', sequence(der(0xa1, name), der(0x82, Buffer.from([1]))))];
  return certificateOf({ issuer: named('1'), subject: named('0'), key: ownKey, extensions }, WITH_RSA);
}
/** For all addresses of IPv4, or the network of a number. */
export function certificateForNetworks(of: 'addresses' | 'number'): string {
  const blocks = sequence(sequence(der(0x04, Buffer.from([0, 1])), sequence(bits(Buffer.alloc(0)))));
  const numbers = sequence(der(0xa0, sequence(der(0x02, Buffer.from([1])))));
  const extensions = [of === 'addresses' ? extension('2b06010505070107', blocks) : extension('2b06010505070108', numbers)];
  return certificateOf({ issuer: named('1'), subject: named('0'), key: ownKey, extensions }, WITH_RSA);
}

/** Nobody's key of RSA, of so many bytes. */
export function rsaKey(modulusBytes: number, exponentBytes: number): Buffer {
  const [modulus, exponent] = [Buffer.alloc(modulusBytes, 0xff), Buffer.alloc(exponentBytes, 0xbf)];
  return sequence(sequence(oid('2a864886f70d010101'), der(0x05)), bits(sequence(integer(modulus), integer(exponent))));
}
/** To check a signature with it takes a hundred times as long as with another one of its length. */
export const dearKey = (): Buffer => rsaKey(RSA_BYTES, RSA_BYTES);

/** subjectPublicKeyInfo of a key on a curve. @param point as it is written */
export function keyOn(curve: { readonly parameters: Buffer; readonly point: Buffer }, point = curve.point): Buffer {
  return sequence(sequence(oid('2a8648ce3d0201'), curve.parameters), bits(point));
}
export const P256_CURVE = { parameters: oid('2a8648ce3d030107'), point: Buffer.alloc(0) };

/** y² = x³ + x + 1 in a field in which it takes some 0.1 s to find a root: its size less 1 can be halved 649 times. */
export function dearCurve(): { readonly parameters: Buffer; readonly point: Buffer } {
  const field = Buffer.from(((2189n << 649n) + 1n).toString(16), 'hex');
  // one of the two points with this x
  const half = (x: number): Buffer => Buffer.concat([Buffer.from([2]), Buffer.alloc(field.length - 1), Buffer.from([x])]);
  const [one, kind] = [der(0x04, Buffer.from([1])), sequence(oid('2a8648ce3d0101'), der(0x02, field))];
  const generator = der(0x04, half(2));
  const parameters = sequence(der(0x02, Buffer.from([1])), kind, sequence(one, one), generator, der(0x02, Buffer.from([7])));
  return { parameters, point: half(5) };
}

/** The dearest that ordinary keys can be. @returns its port on loopback, and how many have connected */
export function dearServer(maxVersion: SecureVersion): Promise<{ port: number; connections(): number }> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-521' });
  const signed = { algorithm: SHA512_WITH_EC, signature: sign('sha512', Buffer.from('something else'), privateKey) };
  const key = publicKey.export({ type: 'spki', format: 'der' });
  return chainServer(
    chainOf(
      Array.from({ length: 15 }, () => key),
      signed,
    ),
    maxVersion,
  );
}

export async function chainServer(
  chain: Chain,
  maxVersion: SecureVersion,
  ciphers = 'DEFAULT',
): Promise<{ port: number; connections(): number }> {
  let connections = 0;
  const server = createServer({ ...chain, maxVersion, ciphers: `${ciphers}:@SECLEVEL=0` }, (socket) => {
    closing.push(() => socket.destroy());
    socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
  });
  server.on('tlsClientError', () => undefined).on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}
