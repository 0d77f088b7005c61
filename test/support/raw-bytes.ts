// Bitcoin's encodings of numbers and bytes, for the tests that make raw transactions and blocks themselves.
import { createHash } from 'node:crypto';

export const hash256 = (bytes: Buffer): Buffer =>
  createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest();
export function i32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
export function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}
export function compactSize(value: number | bigint): Buffer {
  const big = BigInt(value);
  if (big < 0xfdn) return Buffer.from([Number(big)]);
  const size = big < 0x1_0000n ? 2 : big < 0x1_0000_0000n ? 4 : 8;
  const bytes = Buffer.alloc(9);
  bytes[0] = size === 2 ? 0xfd : size === 4 ? 0xfe : 0xff;
  bytes.writeBigUInt64LE(big, 1);
  return bytes.subarray(0, size + 1);
}
export const varBytes = (bytes: Buffer): Buffer => Buffer.concat([compactSize(bytes.length), bytes]);
/** Hex in display order to bytes in wire order, and back with hex. */
export const reversed = (hex: string): Buffer => Buffer.from(hex, 'hex').reverse();

/** Signed, little-endian. */
export function i64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}
