// Reads along in the TLS handshake of a server, up to its certificates: nothing of it is computed with before they were looked at.
import { createDecipheriv, createHmac } from 'node:crypto';
import { unusualCertificates } from './certificates.ts';
import { HANDSHAKE, RECORD_HEAD_BYTES } from './tls-records.ts';

const [CHANGE_CIPHER, ENCRYPTED] = [20, 23];
const [SERVER_HELLO, CERTIFICATE, FINISHED] = [2, 11, 20];
const MESSAGE_HEAD_BYTES = 4;
const TAG_BYTES = 16;
/** "HelloRetryRequest" instead of random bytes (RFC 8446 §4.1.3). */
const RETRY = 'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c';
/** Those of TLS 1.3 that are offered (RFC 8446 §B.4). */
const SUITES: ReadonlyMap<number, { readonly name: string; readonly hash: string; readonly keyBytes: number }> = new Map([
  [0x1301, { name: 'aes-128-gcm', hash: 'sha256', keyBytes: 16 }],
  [0x1302, { name: 'aes-256-gcm', hash: 'sha384', keyBytes: 32 }],
  [0x1303, { name: 'chacha20-poly1305', hash: 'sha256', keyBytes: 32 }],
]);

/** Looks at one whole record, with its head, before it is passed on. @returns what ends the handshake; null = nothing */
export type SeeRecord = (record: Buffer) => string | null;

/** @param secret what encrypts the server's handshake in TLS 1.3, once it is known here; else null */
export function handshakeSight(secret: () => Buffer | null): SeeRecord {
  let messages: Buffer = Buffer.alloc(0);
  let suite = 0;
  let [isAnswered, isOver] = [false, false];
  let open: ((record: Buffer) => Buffer) | null = null;

  function hello(body: Buffer): void {
    isAnswered = body.toString('hex', 2, 34) !== RETRY;
    suite = body.readUInt16BE(35 + body.readUInt8(34));
  }
  function take(part: Buffer): string | null {
    messages = Buffer.concat([messages, part]);
    while (!isOver && messages.length >= MESSAGE_HEAD_BYTES) {
      const end = MESSAGE_HEAD_BYTES + messages.readUIntBE(1, 3);
      if (messages.length < end) return null;
      const [kind, body] = [messages[0], messages.subarray(MESSAGE_HEAD_BYTES, end)];
      messages = messages.subarray(end);
      if (kind === SERVER_HELLO) hello(body);
      isOver = kind === CERTIFICATE || kind === FINISHED;
      if (kind === CERTIFICATE) return unusualCertificates(body, open !== null);
    }
    return null;
  }
  function see(record: Buffer): string | null {
    const key = secret();
    if (record[0] === HANDSHAKE && key === null) return take(record.subarray(RECORD_HEAD_BYTES));
    // before TLS 1.3 what follows is encrypted, and no certificate; in TLS 1.3 it says nothing
    if (record[0] === CHANGE_CIPHER && key === null && isAnswered) isOver = true;
    if (record[0] !== ENCRYPTED) return null;
    if (key === null) return 'it is encrypted too early';
    open ??= opening(key, suite);
    const content = open(record);
    // the kind of a record follows what is in it, and zeros after that
    let end = content.length - 1;
    while (end > 0 && content[end] === 0) end--;
    return content[end] === HANDSHAKE ? take(content.subarray(0, end)) : null;
  }
  return (record) => {
    if (isOver) return null;
    try {
      return see(record);
    } catch {
      return 'it cannot be read';
    }
  };
}

/** Decrypts records that come one after the other (RFC 8446 §5.2, §7.3). */
function opening(secret: Buffer, number: number): (record: Buffer) => Buffer {
  const suite = SUITES.get(number);
  if (suite === undefined) throw new RangeError('a cipher that was not offered');
  const { name, hash, keyBytes } = suite;
  /** HKDF-Expand-Label: both are shorter than one block of it. */
  const expand = (label: string, length: number): Buffer => {
    const whole = `tls13 ${label}`;
    const info = Buffer.from([0, length, whole.length, ...Buffer.from(whole), 0, 1]);
    return createHmac(hash, secret).update(info).digest().subarray(0, length);
  };
  const [key, iv] = [expand('key', keyBytes), expand('iv', 12)];
  let sequence = 0;
  return (record) => {
    const nonce = Buffer.from(iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence++) >>> 0, 8);
    // the types of Node know this form for the names of either kind only
    const decipher = createDecipheriv(name as 'aes-128-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(record.subarray(0, RECORD_HEAD_BYTES));
    const end = record.length - TAG_BYTES;
    decipher.setAuthTag(record.subarray(end));
    return Buffer.concat([decipher.update(record.subarray(RECORD_HEAD_BYTES, end)), decipher.final()]);
  };
}
