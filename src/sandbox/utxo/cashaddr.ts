// CashAddr, the addresses of Bitcoin Cash, both ways (spec of 2018: P2PKH and P2SH of 20 bytes, and their token-aware forms). Written
// separately from the production code so that neither can hide the other's mistake.

const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATOR = [0x98f2bc8e61n, 0x79b76d99e2n, 0xf33e5fb3c4n, 0xae2eabe2a8n, 0x1e4f43e470n];
const CHECK_LETTERS = 8;
const PAYLOAD_BYTES = 21;
const PAYLOAD_LETTERS = 34;

export type CashKind = 'pubkeyhash' | 'scripthash';
/** By the type of the version byte; 2 and 3 are the token-aware forms. */
const KINDS: readonly CashKind[] = ['pubkeyhash', 'scripthash', 'pubkeyhash', 'scripthash'];

function checksum(prefix: string, digits: readonly number[]): bigint {
  let c = 1n;
  for (const digit of [...[...prefix].map((letter) => letter.charCodeAt(0) & 0x1f), 0, ...digits]) {
    const top = c >> 35n;
    c = ((c & 0x07ffffffffn) << 5n) ^ BigInt(digit);
    GENERATOR.forEach((each, bit) => {
      if ((top >> BigInt(bit)) & 1n) c ^= each;
    });
  }
  return c ^ 1n;
}

/** Eight-bit digits to five-bit ones (filled up with zeros), or back (null when what is left over is not zero). */
function regroup(digits: readonly number[], from: 5 | 8, to: 5 | 8): number[] | null {
  const made: number[] = [];
  let held = 0;
  let bits = 0;
  for (const digit of digits) {
    held = (held << from) | digit;
    bits += from;
    while (bits >= to) {
      bits -= to;
      made.push(held >> bits);
      held &= (1 << bits) - 1;
    }
  }
  if (to === 8) return held === 0 && bits < from ? made : null;
  if (bits > 0) made.push(held << (to - bits));
  return made;
}

/** With its prefix. */
export function cashAddress(prefix: string, kind: CashKind, hash: Uint8Array): string {
  const payload = regroup([KINDS.indexOf(kind) << 3, ...hash], 8, 5) as number[];
  const check = checksum(prefix, [...payload, ...Array.from({ length: CHECK_LETTERS }, () => 0)]);
  const tail = Array.from({ length: CHECK_LETTERS }, (_, i) => Number((check >> BigInt(5 * (CHECK_LETTERS - 1 - i))) & 31n));
  return `${prefix}:${[...payload, ...tail].map((digit) => LETTERS[digit]).join('')}`;
}

/** Reads an address with this prefix or without one, in one case; null for anything else. */
export function readCashAddress(prefix: string, address: string): { readonly kind: CashKind; readonly hash: Buffer } | null {
  const lower = address.toLowerCase();
  if (address !== lower && address !== address.toUpperCase()) return null;
  const body = lower.startsWith(`${prefix}:`) ? lower.slice(prefix.length + 1) : lower;
  const digits = [...body].map((letter) => LETTERS.indexOf(letter));
  if (digits.length !== PAYLOAD_LETTERS + CHECK_LETTERS || digits.includes(-1) || checksum(prefix, digits) !== 0n) return null;
  const bytes = regroup(digits.slice(0, PAYLOAD_LETTERS), 5, 8);
  if (bytes === null || bytes.length !== PAYLOAD_BYTES) return null;
  const [version = 0, ...hash] = bytes;
  const kind = (version & 7) === 0 ? KINDS[version >> 3] : undefined;
  return kind === undefined ? null : { kind, hash: Buffer.from(hash) };
}
