// The token with which the script of a Bitcoin Cash output may begin (CHIP-2022-02 CashTokens), recognised so that such an output never
// counts as a payment.
import { displayHash } from '../bytes.ts';

/** First byte of a script that begins with a token. */
export const TOKEN_PREFIX = 0xef;

const RESERVED = 0x80;
const HAS_COMMITMENT = 0x40;
const HAS_NFT = 0x20;
const HAS_AMOUNT = 0x10;
const CAPABILITY = 0x0f;
const MOST_CAPABILITY = 2;
const BITFIELD_AT = 33;
const LARGEST_AMOUNT = 2n ** 63n - 1n;

export type Token = {
  readonly category: string;
  readonly tokens: bigint;
  readonly nft: boolean;
  /** Where the output script proper begins. */
  readonly scriptStart: number;
};

/**
 * The token at the beginning of bytes[start, end), whose first byte is TOKEN_PREFIX.
 * @returns null when it is not as the CHIP defines it: no node has accepted such an output since the upgrade of 2023, and before it nobody
 * could spend one, so it is like any other script that is not ours
 */
export function readToken(bytes: Buffer, start: number, end: number): Token | null {
  if (end - start <= BITFIELD_AT) return null;
  const bits = bytes[start + BITFIELD_AT] as number;
  const nft = (bits & HAS_NFT) !== 0;
  const capability = bits & CAPABILITY;
  if (bits & RESERVED || capability > MOST_CAPABILITY) return null;
  if (!nft && (capability !== 0 || bits & HAS_COMMITMENT || !(bits & HAS_AMOUNT))) return null;
  let at = start + BITFIELD_AT + 1;
  if (bits & HAS_COMMITMENT) {
    const length = readCompact(bytes, at, end);
    if (length === null || length.value === 0n || length.value > BigInt(end - length.next)) return null;
    at = length.next + Number(length.value);
  }
  let tokens = 0n;
  if (bits & HAS_AMOUNT) {
    const amount = readCompact(bytes, at, end);
    if (amount === null || amount.value === 0n || amount.value > LARGEST_AMOUNT) return null;
    tokens = amount.value;
    at = amount.next;
  }
  return { category: displayHash(bytes, start + 1), tokens, nft, scriptStart: at };
}

/** CompactSize in its shortest form within bytes[at, end); null when it is not. */
function readCompact(bytes: Buffer, at: number, end: number): { readonly value: bigint; readonly next: number } | null {
  if (at >= end) return null;
  const first = bytes[at] as number;
  if (first < 0xfd) return { value: BigInt(first), next: at + 1 };
  const size = first === 0xfd ? 2 : first === 0xfe ? 4 : 8;
  const next = at + 1 + size;
  if (next > end) return null;
  const value = size === 8 ? bytes.readBigUInt64LE(at + 1) : BigInt(bytes.readUIntLE(at + 1, size));
  const shortest = size === 2 ? value >= 0xfdn : value >> BigInt(size * 4) > 0n;
  return shortest ? { value, next } : null;
}
