// The certificates that a TLS server sends, looked at before OpenSSL computes with them. It takes a key of any kind apart as soon as it reads a
// certificate, and all names in it where its subject is the issuer of another one, also of one that nobody needs: a single key of 270 bytes, on a
// curve that the server made up, took 0.3 s; a single certificate of 23 kB 3.7 s and 760 MB.
import { element, elements, expected, part } from './der.ts';

/** Servers have 2 to 4; some send all that their CA has ever had. */
const MOST_CERTIFICATES = 16;
/** CAs sign keys of RSA up to 4,096 bits, with an exponent of three bytes. */
const MOST_RSA_BYTES = { modulus: 1024, exponent: 8 };
/** Of names, extensions and what is in them: each takes some 200 bytes as long as the connection is there, 2 MB in all. A chain has some hundreds. */
const MOST_PARTS = 3_000;
/** Each name of a chain is compared with each constraint of it, which takes up to 0.3 µs. */
const MOST_COMPARISONS = 65_536;
/** A name of a kind of its own may be that of a mailbox: for each comparison a constraint is decoded from Punycode, which takes up to 5 µs. */
const AS_DEAR_AS_NAMES = 16;
/** Of tags of elements that consist of others. */
const CONSTRUCTED = 0x20;
const [BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OID, SEQUENCE] = [0x01, 0x02, 0x03, 0x04, 0x06, 0x30];
/** Parts that may be there or not have a number. */
const [PART_0, PART_1, PART_3] = [0xa0, 0xa1, 0xa3];
const [VERSION, EXTENSIONS] = [PART_0, PART_3];
/** Kinds of extensions (RFC 5280 §4.2.1). */
const [OTHER_NAMES, CONSTRAINTS, LISTS, ISSUER_KEY] = ['551d11', '551d1e', '551d1f', '551d23'];
/** Those that OpenSSL takes apart and keeps. */
const KEPT: ReadonlySet<string> = new Set([OTHER_NAMES, CONSTRAINTS, LISTS, ISSUER_KEY]);
/** RFC 3779: blocks of addresses of networks and their numbers, which no server has. Each is compared with all those of each issuer. */
const NETWORKS: ReadonlySet<string> = new Set(['2b06010505070107', '2b06010505070108']);
/** Kinds of keys, as they begin in DER: those that CAs of browsers may sign, and EdDSA. */
const EC = '2a8648ce3d0201';
const RSA: ReadonlySet<string> = new Set(['2a864886f70d010101', '2a864886f70d01010a']);
const EDDSA: ReadonlySet<string> = new Set(['2b6570', '2b6571']);
/** P-256, P-384 and P-521. */
const CURVES: ReadonlySet<string> = new Set(['2a8648ce3d030107', '2b81040022', '2b81040023']);
/** A point of which all is there: the other half of one is a root to be found. */
const UNCOMPRESSED = 4;

/**
 * What a Certificate message has that no ordinary server sends; null = nothing.
 * @param body without its head (RFC 8446 §4.4.2, RFC 5246 §7.4.2)
 */
export function unusualCertificates(body: Buffer, isTls13: boolean): string | null {
  try {
    const list = isTls13 ? bytes(body, 1 + body.readUInt8(0), 3) : bytes(body, 0, 3);
    let [count, parts, names, constraints] = [0, 0, 0, 0];
    for (let at = 0; at < list.length; ) {
      if (++count > MOST_CERTIFICATES) return `a chain of more than ${MOST_CERTIFICATES} certificates`;
      const certificate = bytes(list, at, 3);
      at += 3 + certificate.length;
      if (isTls13) at += 2 + bytes(list, at, 2).length;
      const { issuer, subject, key, extensions } = partsOf(certificate);
      if (!isUsualKey(key)) return 'a certificate with an unusual key';
      if (extensions.some(isPartOfName)) return 'a certificate with part of a name for its revocation list';
      if (extensions.some(({ kind }) => NETWORKS.has(kind))) return 'a certificate for networks';
      const kept = extensions.filter(({ kind }) => KEPT.has(kind)).map(({ value }) => value);
      parts += [issuer, ...subject, ...kept].reduce((all, one) => all + partsIn(one), extensions.length);
      if (parts > MOST_PARTS) return `certificates of more than ${MOST_PARTS} parts`;
      const others = extensions.filter(({ kind }) => kind === OTHER_NAMES).flatMap(({ value }) => elements(value));
      names += sum(subject) + others.length + others.filter(({ tag }) => tag === PART_0).length * (AS_DEAR_AS_NAMES - 1);
      constraints += sum(extensions.filter(({ kind }) => kind === CONSTRAINTS).flatMap(({ value }) => bodies(value)));
    }
    return names * constraints > MOST_COMPARISONS ? 'many names and constraints of names' : null;
  } catch (error) {
    if (error instanceof RangeError) return 'a malformed certificate';
    throw error;
  }
}

/** A part that begins with its length. */
function bytes(from: Buffer, at: number, sizeOfLength: number): Buffer {
  return part(from, at + sizeOfLength, from.readUIntBE(at, sizeOfLength));
}
const bodies = (from: Buffer): readonly Buffer[] => elements(from).map(({ body }) => body);
/** How many elements are in all of these. */
const sum = (all: readonly Buffer[]): number => all.reduce((count, one) => count + elements(one).length, 0);

/** How many elements there are, with all that they consist of. */
function partsIn(from: Buffer): number {
  return elements(from).reduce((count, { tag, body }) => count + 1 + ((tag & CONSTRUCTED) === 0 ? 0 : partsIn(body)), 0);
}

type Extension = {
  readonly kind: string;
  /** Of those that are looked at, what is in their sequence. */
  readonly value: Buffer;
};
type Parts = {
  readonly issuer: Buffer;
  /** The sets that it consists of. */
  readonly subject: readonly Buffer[];
  /** subjectPublicKeyInfo */
  readonly key: Buffer;
  readonly extensions: readonly Extension[];
};

/** RFC 5280 §4.1 */
function partsOf(certificate: Buffer): Parts {
  let left = expected(SEQUENCE, expected(SEQUENCE, certificate).body).body;
  if (element(left).tag === VERSION) left = element(left).rest;
  // serialNumber, signature
  for (const tag of [INTEGER, SEQUENCE]) left = expected(tag, left).rest;
  const issuer = expected(SEQUENCE, left);
  const validity = expected(SEQUENCE, issuer.rest);
  const subject = expected(SEQUENCE, validity.rest);
  const key = expected(SEQUENCE, subject.rest);
  const extensions = elements(key.rest).filter(({ tag }) => tag === EXTENSIONS);
  return {
    issuer: issuer.body,
    subject: bodies(subject.body),
    key: key.body,
    extensions: extensions.flatMap(({ body }) => bodies(expected(SEQUENCE, body).body).map(extension)),
  };
}

function extension(body: Buffer): Extension {
  const { body: name, rest } = expected(OID, body);
  const kind = name.toString('hex');
  if (!KEPT.has(kind)) return { kind, value: rest };
  const isCritical = element(rest);
  const value = expected(OCTET_STRING, isCritical.tag === BOOLEAN ? isCritical.rest : rest).body;
  return { kind, value: expected(SEQUENCE, value).body };
}

/** Whether the place of a revocation list is part of a name: each is made a whole one, with all of the issuer's (RFC 5280 §4.2.1.13). */
function isPartOfName({ kind, value }: Extension): boolean {
  if (kind !== LISTS) return false;
  return bodies(value).some((place) => elements(place).some(({ tag, body }) => tag === PART_0 && element(body).tag === PART_1));
}

function isUsualKey(info: Buffer): boolean {
  const algorithm = expected(SEQUENCE, info);
  const kind = expected(OID, algorithm.body);
  const name = kind.body.toString('hex');
  // the first byte of a bit string says how many bits of the last one are none
  const key = expected(BIT_STRING, algorithm.rest).body.subarray(1);
  if (RSA.has(name)) return isUsualRsa(key);
  if (name !== EC) return EDDSA.has(name);
  const curve = element(kind.rest);
  return curve.tag === OID && CURVES.has(curve.body.toString('hex')) && key[0] === UNCOMPRESSED;
}

/** RFC 8017 §A.1.1 */
function isUsualRsa(key: Buffer): boolean {
  const modulus = expected(INTEGER, expected(SEQUENCE, key).body);
  const exponent = expected(INTEGER, modulus.rest);
  // a zero may stand before either, for its sign
  return modulus.body.length <= MOST_RSA_BYTES.modulus + 1 && exponent.body.length <= MOST_RSA_BYTES.exponent + 1;
}
