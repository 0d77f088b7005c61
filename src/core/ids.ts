// Public identifiers: a prefix and 22 characters of base62 over 128 bits, 48 of them the time so that new rows sort and cluster together.
// Randomness and time come from the caller (core has neither).

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 22;

/**
 * @param prefix for example `txn_`
 * @param atMs milliseconds since 1970, below 2^48
 * @param random 10 bytes from a cryptographic source
 */
export function sortableId(prefix: string, atMs: number, random: Uint8Array): string {
  if (random.length !== 10) throw new Error('an id takes 10 random bytes');
  let value = BigInt(atMs);
  for (const byte of random) value = (value << 8n) | BigInt(byte);
  let text = '';
  for (let i = 0; i < LENGTH; i++) {
    text = ALPHABET[Number(value % 62n)] + text;
    value /= 62n;
  }
  return prefix + text;
}
