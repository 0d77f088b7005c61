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
  let text = '';
  while (text.length < LENGTH) {
    const rest = divide(limbs);
    text = pair(Math.floor(rest / 62 ** 4)) + pair(Math.floor(rest / 62 ** 2)) + pair(rest) + text;
  }
  // the value has 22 digits, so the last division gives leading zeros
  return prefix + text.slice(text.length - LENGTH);
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
