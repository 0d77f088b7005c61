// The certificates that a TLS server sends, looked at before OpenSSL computes with them. It takes a key of any kind apart as soon as it reads a
// certificate, also of one that nobody needs: a single key of 270 bytes, on a curve that the server made up, took 0.3 s.

/** Servers have 2 to 4; some send all that their CA has ever had. */
const MOST_CERTIFICATES = 16;
const [INTEGER, BIT_STRING, OID, SEQUENCE, VERSION] = [0x02, 0x03, 0x06, 0x30, 0xa0];
const EC = '2a8648ce3d0201';
/** Of keys, as they begin in DER: those that CAs of browsers may sign, and EdDSA. */
const KEYS: ReadonlySet<string> = new Set(['2a864886f70d010101', '2a864886f70d01010a', '2b6570', '2b6571']);
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
    let count = 0;
    for (let at = 0; at < list.length; ) {
      if (++count > MOST_CERTIFICATES) return `a chain of more than ${MOST_CERTIFICATES} certificates`;
      const certificate = bytes(list, at, 3);
      at += 3 + certificate.length;
      if (isTls13) at += 2 + bytes(list, at, 2).length;
      if (!isUsualKey(keyOf(certificate))) return 'a certificate with an unusual key';
    }
    return null;
  } catch (error) {
    if (error instanceof RangeError) return 'a malformed certificate';
    throw error;
  }
}

/** A part that begins with its length. */
function bytes(from: Buffer, at: number, sizeOfLength: number): Buffer {
  return part(from, at + sizeOfLength, from.readUIntBE(at, sizeOfLength));
}

function part(from: Buffer, at: number, length: number): Buffer {
  if (at + length > from.length) throw new RangeError('it ends too early');
  return from.subarray(at, at + length);
}

type Element = { readonly tag: number; readonly body: Buffer; readonly rest: Buffer };

/** The first element of what is there, in DER. OpenSSL takes a length that is not told too: that is none here. */
function element(from: Buffer): Element {
  const tag = from.readUInt8(0);
  const first = from.readUInt8(1);
  const size = first < 0x80 ? 0 : first - 0x80;
  const length = first < 0x80 ? first : from.readUIntBE(2, size);
  const body = part(from, 2 + size, length);
  return { tag, body, rest: from.subarray(2 + size + length) };
}

function expected(tag: number, from: Buffer): Element {
  const one = element(from);
  if (one.tag !== tag) throw new RangeError('something else is there');
  return one;
}

/** subjectPublicKeyInfo of RFC 5280 §4.1. */
function keyOf(certificate: Buffer): Buffer {
  let left = expected(SEQUENCE, expected(SEQUENCE, certificate).body).body;
  if (element(left).tag === VERSION) left = element(left).rest;
  // serialNumber, signature, issuer, validity, subject
  for (const tag of [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE]) left = expected(tag, left).rest;
  return expected(SEQUENCE, left).body;
}

function isUsualKey(info: Buffer): boolean {
  const algorithm = expected(SEQUENCE, info);
  const kind = expected(OID, algorithm.body);
  const name = kind.body.toString('hex');
  if (name !== EC) return KEYS.has(name);
  const curve = element(kind.rest);
  // the first byte of a bit string says how many bits of the last one are none
  const point = expected(BIT_STRING, algorithm.rest).body;
  return curve.tag === OID && CURVES.has(curve.body.toString('hex')) && point[1] === UNCOMPRESSED;
}
