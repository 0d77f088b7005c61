// A cursor over the raw bytes of a block or transaction, and double SHA-256 without allocation. Everything unexpected throws Malformed: the
// scanner never reads past the end, and never continues after something it does not understand.
import { hash } from 'node:crypto';

/** The bytes are not what they should be; the message says what and where. */
export class Malformed extends Error {}

export type Cursor = { readonly bytes: Buffer; at: number };

/** Skips `length` bytes. */
export function skip(cursor: Cursor, length: number): void {
  const next = cursor.at + length;
  if (next > cursor.bytes.length)
    throw new Malformed(`cut off at byte ${cursor.bytes.length}, ${next - cursor.bytes.length} bytes are missing`);
  cursor.at = next;
}

/** The next byte. Throws where the bytes end. */
export function readByte(cursor: Cursor): number {
  const at = cursor.at;
  skip(cursor, 1);
  return cursor.bytes[at] as number;
}

/** Bitcoin's CompactSize; only its shortest form, and never more than the bytes that are left could hold. */
export function readCount(cursor: Cursor): number {
  const { bytes } = cursor;
  const at = cursor.at;
  skip(cursor, 1);
  const first = bytes[at] as number;
  if (first < 0xfd) return first;
  let value: number;
  let least: number;
  if (first === 0xfd) {
    skip(cursor, 2);
    value = bytes.readUInt16LE(at + 1);
    least = 0xfd;
  } else if (first === 0xfe) {
    skip(cursor, 4);
    value = bytes.readUInt32LE(at + 1);
    least = 0x1_0000;
  } else throw new Malformed(`a count above 2^32 at byte ${at}`);
  if (value < least) throw new Malformed(`a count that is not in its shortest form at byte ${at}`);
  if (value > bytes.length) throw new Malformed(`a count of ${value} at byte ${at} is more than the bytes that are left`);
  return value;
}

/** A count in CompactSize. */
export function compactSize(count: number): Buffer {
  if (count < 0xfd) return Buffer.of(count);
  const bytes = Buffer.alloc(count < 0x1_0000 ? 3 : 5, count < 0x1_0000 ? 0xfd : 0xfe);
  bytes.writeUIntLE(count, 1, bytes.length - 1);
  return bytes;
}

/** Skips a byte string after its CompactSize. */
export function skipBytes(cursor: Cursor): void {
  const length = readCount(cursor);
  skip(cursor, length);
}

/** SHA-256 of SHA-256 of bytes[start, end), written to target at an offset. Passing it as text is four times as fast as one Buffer per hash. */
export function doubleHash(bytes: Buffer, start: number, end: number, target: Buffer, offset: number): void {
  inner.write(hash('sha256', bytes.subarray(start, end), 'binary'), 0, 'latin1');
  target.write(hash('sha256', inner, 'binary'), offset, 'latin1');
}
const inner = Buffer.alloc(32);

/** A hash in display order (reversed), hex. */
export function displayHash(bytes: Buffer, start: number): string {
  return Buffer.from(bytes.subarray(start, start + 32))
    .reverse()
    .toString('hex');
}

/**
 * The Merkle root over `count` hashes of 32 bytes in `level`, which is overwritten; the root is then in its first 32 bytes. Two equal
 * adjacent hashes mean that transactions were repeated without changing the root (CVE-2012-2459).
 */
export function foldMerkle(level: Buffer, count: number): void {
  let width = count;
  while (width > 1) {
    for (let i = 0; i < width; i += 2) {
      const left = i * 32;
      if (i + 1 === width) {
        level.copy(pair, 0, left, left + 32);
        level.copy(pair, 32, left, left + 32);
        doubleHash(pair, 0, 64, level, (i / 2) * 32);
      } else {
        if (level.compare(level, left, left + 32, left + 32, left + 64) === 0) throw new Malformed('a transaction is repeated');
        doubleHash(level, left, left + 64, level, (i / 2) * 32);
      }
    }
    width = (width + 1) >> 1;
  }
}
const pair = Buffer.alloc(64);
