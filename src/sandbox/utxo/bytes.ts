// Bytes as Bitcoin's family writes them: little-endian numbers, compact sizes, double SHA-256, hashes shown in reverse. Written separately
// from the production parser so that neither can hide the other's mistake.
import { createHash } from 'node:crypto';

/** Two bytes, little-endian. */
export const u16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
};
/** Four bytes, little-endian, unsigned. */
export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};
/** Four bytes, little-endian, signed. */
export const i32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};
/** Eight bytes, little-endian, unsigned: an amount in minor units. */
export const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};

/** Bitcoin's CompactSize. */
export function compactSize(value: number): Buffer {
  if (value < 0xfd) return Buffer.from([value]);
  if (value <= 0xffff) return Buffer.concat([Buffer.from([0xfd]), u16(value)]);
  return Buffer.concat([Buffer.from([0xfe]), u32(value)]);
}

/** A CompactSize of the length, then the bytes. */
export const withLength = (bytes: Uint8Array): Buffer => Buffer.concat([compactSize(bytes.length), bytes]);

/** SHA-256. */
export const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
/** SHA-256 twice, as txids and block hashes are made. */
export const hash256 = (bytes: Uint8Array): Buffer => sha256(sha256(bytes));
/** RIPEMD-160 of SHA-256, as key and script hashes are made. */
export const hash160 = (bytes: Uint8Array): Buffer => createHash('ripemd160').update(sha256(bytes)).digest();

/** A hash as it is shown: reversed, hex. */
export const shown = (hash: Uint8Array): string => Buffer.from(hash).reverse().toString('hex');
/** A shown hash in the order of the bytes on the wire. */
export const wire = (hash: string): Buffer => Buffer.from(hash, 'hex').reverse();

/** Walks through bytes; throws a RangeError when they end too early. */
export type Cursor = { readonly bytes: Buffer; at: number };

/** The next bytes; RangeError where there are fewer. */
export function take(cursor: Cursor, length: number): Buffer {
  const end = cursor.at + length;
  if (end > cursor.bytes.length) throw new RangeError('the bytes end too early');
  const part = cursor.bytes.subarray(cursor.at, end);
  cursor.at = end;
  return part;
}
/** The next four bytes as an unsigned number. */
export const takeU32 = (cursor: Cursor): number => take(cursor, 4).readUInt32LE();
/** The next four bytes as a signed number. */
export const takeI32 = (cursor: Cursor): number => take(cursor, 4).readInt32LE();
/** The next eight bytes as an unsigned number. */
export const takeU64 = (cursor: Cursor): bigint => take(cursor, 8).readBigUInt64LE();

/** Reads a CompactSize; refuses one that is not in its shortest form, or larger than the bytes that are left. */
export function takeCompactSize(cursor: Cursor): number {
  const first = take(cursor, 1)[0] as number;
  if (first === 0xff) throw new RangeError('a count beyond 32 bits');
  const value = first < 0xfd ? first : first === 0xfd ? take(cursor, 2).readUInt16LE() : takeU32(cursor);
  if ((first === 0xfd && value < 0xfd) || (first === 0xfe && value <= 0xffff))
    throw new RangeError('a count that is not in its shortest form');
  if (value > cursor.bytes.length - cursor.at) throw new RangeError('a count larger than what follows');
  return value;
}
/** The next bytes, as many as the compact size before them says. */
export const takeBytes = (cursor: Cursor): Buffer => take(cursor, takeCompactSize(cursor));
