// A hash of short byte strings under a key that only this process knows: strangers choose the scripts of a block, and must not be able to
// choose their positions in our hash tables, not even by measuring how long we take. HalfSipHash-2-4 (Aumasson and Bernstein), four bytes
// at a time.
import { randomBytes } from 'node:crypto';

const secret = randomBytes(8);
const LOW = secret.readInt32LE(0);
const HIGH = secret.readInt32LE(4);

/** 32 bits of bytes[start, end), other ones in each process. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  return halfSipHash(bytes, start, end, LOW, HIGH);
}

// the steps are unrolled and the bytes combined by hand: this runs for every output of every block
/** @returns HalfSipHash-2-4 with an output of 32 bits; the key's halves are read as little-endian numbers */
export function halfSipHash(bytes: Uint8Array, start: number, end: number, low: number, high: number): number {
  let v0 = low | 0;
  let v1 = high | 0;
  let v2 = 0x6c796765 ^ low;
  let v3 = 0x74656462 ^ high;
  const length = end - start;
  const rest = length & 3;
  const last = end - rest;
  for (let at = start; ; at += 4) {
    let word: number;
    if (at < last) {
      word =
        (bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24);
    } else {
      word = length << 24;
      if (rest > 0) word |= bytes[at] as number;
      if (rest > 1) word |= (bytes[at + 1] as number) << 8;
      if (rest > 2) word |= (bytes[at + 2] as number) << 16;
    }
    v3 ^= word;
    for (let round = 0; round < 2; round++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    v0 ^= word;
    if (at >= last) break;
  }
  v2 ^= 0xff;
  for (let round = 0; round < 4; round++) {
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
  }
  return (v1 ^ v3) >>> 0;
}
