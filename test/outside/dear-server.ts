// A TLS server whose certificates take long to check.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
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

/** @returns its port on loopback, and how many have connected */
export async function dearServer(maxVersion: SecureVersion): Promise<{ port: number; connections(): number }> {
  let connections = 0;
  const server = createServer({ ...dearChain(), maxVersion, ciphers: 'DEFAULT:@SECLEVEL=0' }, (socket) => {
    closing.push(() => socket.destroy());
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined).on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}
