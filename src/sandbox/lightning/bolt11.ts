// Writes BOLT11 payment requests of the regtest network, signed with the node's key.
import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bech32 } from '@scure/base';

const PREFIX = 'lnbcrt';
/** Feature bits 9 (var_onion_optin), 14 (payment_secret, required) and 17 (basic_mpp), as LND sets them. */
const FEATURES = [9, 14, 17];
const TAG = { hash: 1, features: 5, expiry: 6, description: 13, descriptionHash: 23, secret: 16, cltv: 24 } as const;
/** LND's default for the last hop. */
const FINAL_CLTV = 80;

export type NewRequest = {
  readonly key: Uint8Array;
  readonly amountMsat: bigint;
  readonly atMs: number;
  readonly paymentHash: Uint8Array;
  readonly paymentSecret: Uint8Array;
  readonly description: string;
  readonly expirySeconds: number;
  /** In the place of the description: 64 hex digits. */
  readonly descriptionHash?: string;
};

/** A number as 5-bit words, the highest first. */
function wordsOf(value: number, least = 1): number[] {
  const words: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 32)) words.unshift(rest % 32);
  while (words.length < least) words.unshift(0);
  return words;
}
const field = (tag: number, words: readonly number[]): number[] => [tag, words.length >> 5, words.length & 31, ...words];
const bytesField = (tag: number, bytes: Uint8Array): number[] => field(tag, bech32.toWords(bytes));

function featureWords(): number[] {
  const words: number[] = Array.from({ length: Math.ceil((Math.max(...FEATURES) + 1) / 5) }, () => 0);
  for (const bit of FEATURES) {
    const at = words.length - 1 - Math.floor(bit / 5);
    words[at] = (words[at] ?? 0) | (1 << (bit % 5));
  }
  return words;
}

/** The amount of the human-readable part, in the largest unit that holds it; a millisatoshi is ten pico-bitcoin. */
function amountText(msat: bigint): string {
  if (msat === 0n) return '';
  if (msat % 100_000_000n === 0n) return `${msat / 100_000_000n}m`;
  if (msat % 100_000n === 0n) return `${msat / 100_000n}u`;
  return msat % 100n === 0n ? `${msat / 100n}n` : `${msat * 10n}p`;
}

/**
 * A BOLT11 invoice, signed by `key` (32 bytes). Amounts are millisatoshis, hashes and secrets hexadecimal; with a hash of the description
 * (LNURL-pay, LUD-06) the description itself is left out.
 */
export function paymentRequest({ key, amountMsat, atMs, ...of }: NewRequest): string {
  const prefix = `${PREFIX}${amountText(amountMsat)}`;
  const words = [
    ...wordsOf(Math.floor(atMs / 1000), 7),
    ...bytesField(TAG.secret, of.paymentSecret),
    ...bytesField(TAG.hash, of.paymentHash),
    ...(of.descriptionHash === undefined
      ? bytesField(TAG.description, Buffer.from(of.description))
      : bytesField(TAG.descriptionHash, Buffer.from(of.descriptionHash, 'hex'))),
    ...field(TAG.cltv, wordsOf(FINAL_CLTV)),
    ...field(TAG.expiry, wordsOf(of.expirySeconds)),
    ...field(TAG.features, featureWords()),
  ];
  return signedRequest(prefix, words, key);
}

/** A payment request of these words, with its signature (BOLT11). */
export function signedRequest(prefix: string, words: readonly number[], key: Uint8Array): string {
  const signed = createHash('sha256').update(prefix).update(packed(words)).digest();
  // recovery id first, the signature behind it
  const recovered = secp256k1.sign(signed, key, { prehash: false, format: 'recovered' });
  const signature = Uint8Array.from([...recovered.subarray(1), recovered[0] ?? 0]);
  return bech32.encode(prefix, [...words, ...bech32.toWords(signature)], false);
}

/** 5-bit words as bytes, filled up with zeros. */
function packed(words: readonly number[]): Uint8Array {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const word of words) {
    value = ((value << 5) | word) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  if (bits > 0) bytes.push((value << (8 - bits)) & 0xff);
  return Uint8Array.from(bytes);
}
