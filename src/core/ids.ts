// Public identifiers: a prefix and 22 characters of base62 over 128 bits, 48 of which are the time, so that new rows sort and cluster
// together. Randomness and time come from the caller (core has neither).

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PAIRS = Array.from(ALPHABET, (first) => Array.from(ALPHABET, (second) => first + second)).flat();
const LENGTH = 22;

const LIMB = 2 ** 16;
const LIMBS = 8;
/** The digits that one division gives: a remainder and the next limb together are still an exact number. */
const DIGITS = 6;
const DIVISOR = 62 ** DIGITS;

/**
 * @param prefix for example `txn_`
 * @param atMs milliseconds since 1970, below 2^48
 * @param random 10 bytes from a cryptographic source
 */
export function sortableId(prefix: string, atMs: number, random: Uint8Array): string {
  if (random.length !== 10) throw new Error('an id takes 10 random bytes');
  const limbs = [Math.floor(atMs / LIMB ** 2), Math.floor(atMs / LIMB) % LIMB, atMs % LIMB];
  for (let i = 0; i < 10; i += 2) limbs.push(((random[i] as number) << 8) | (random[i + 1] as number));
  return prefix + base62(limbs);
}

/** 16 bytes in base62: 22 characters. */
export function textOfBytes(bytes: Uint8Array): string {
  if (bytes.length !== 2 * LIMBS) throw new Error('16 bytes are written in base62');
  const limbs: number[] = [];
  for (let i = 0; i < bytes.length; i += 2) limbs.push(((bytes[i] as number) << 8) | (bytes[i + 1] as number));
  return base62(limbs);
}

/** The 16 bytes of 22 characters of base62; null where they are no such number. */
export function bytesOfText(text: string): Uint8Array | null {
  if (text.length !== LENGTH) return null;
  let value = 0n;
  for (const character of text) {
    const digit = ALPHABET.indexOf(character);
    if (digit < 0) return null;
    value = value * 62n + BigInt(digit);
  }
  if (value >> 128n !== 0n) return null;
  return Uint8Array.from({ length: 2 * LIMBS }, (_, index) => Number((value >> BigInt(8 * (15 - index))) & 0xffn));
}

function base62(limbs: number[]): string {
  let text = '';
  while (text.length < LENGTH) {
    const rest = divide(limbs);
    text = pair(Math.floor(rest / 62 ** 4)) + pair(Math.floor(rest / 62 ** 2)) + pair(rest) + text;
  }
  // the value has 22 digits, so the last division gives leading zeros
  return text.slice(text.length - LENGTH);
}

/** Divides the number, whose highest limb is the first, and returns the remainder. */
function divide(limbs: number[]): number {
  let rest = 0;
  for (let i = 0; i < LIMBS; i++) {
    const value = rest * LIMB + (limbs[i] as number);
    const quotient = Math.floor(value / DIVISOR);
    limbs[i] = quotient;
    rest = value - quotient * DIVISOR;
  }
  return rest;
}

function pair(value: number): string {
  return PAIRS[value % 62 ** 2] as string;
}
