// Decodes BOLT11 payment requests: checksum, network, amount, fields, and the signature, which gives the payee's public key.
import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bech32 } from '@scure/base';
import type { Invoice } from '../../core/lightning/payer.ts';

/** Why a text is no invoice that can be paid, as the end of a sentence. */
export type InvoiceProblem = { readonly problem: string };

const PREFIX = { mainnet: 'bc', testnet: 'tb', regtest: 'bcrt' } as const;
/** As long as a destination may be (contract/payout-fields): an LNURL names its invoice itself. */
const MOST_CHARACTERS = 2_048;
const TIMESTAMP_WORDS = 7;
const SIGNATURE_WORDS = 104;
const HASH_WORDS = 52;
const NODE_ID_WORDS = 53;
const TAG = { hash: 1, description: 13, descriptionHash: 23, secret: 16, expiry: 6, features: 5, cltv: 24, payee: 19 } as const;
const USUAL_EXPIRY_S = 3_600;
/** LND refuses routes that lock money for longer than two weeks. */
const MOST_CLTV = 2_016;
/** Required features that payers have: onions with variable length, payment secrets, payments in parts, blinded routes, metadata. */
const KNOWN_FEATURES = [8, 14, 16, 24, 48];
const MSAT_PER_BITCOIN = 100_000_000_000n;
const DIVISORS: Readonly<Record<string, bigint>> = { m: 1_000n, u: 1_000_000n, n: 1_000_000_000n, p: 1_000_000_000_000n };

type Fields = ReadonlyMap<number, readonly number[]>;

/** Offers, and what is asked for and given for them. */
const BOLT12: InvoiceProblem = {
  problem: 'this is of BOLT12, which is not taken: ask for a BOLT11 invoice, an LNURL or a Lightning address',
};
const cut: InvoiceProblem = { problem: 'a field of this invoice is cut off' };

/** @param network whose invoices are accepted */
export function decodeInvoice(network: keyof typeof PREFIX, text: string): Invoice | InvoiceProblem {
  if (text.length > MOST_CHARACTERS) return { problem: `an invoice has at most ${MOST_CHARACTERS} characters` };
  // without a checksum
  if (/^ln[oir]1/i.test(text)) return BOLT12;
  const decoded = bech32.decodeUnsafe(text, false);
  if (decoded === undefined) return { problem: 'the checksum or the characters of this invoice are wrong' };
  const { prefix, words } = decoded;
  // "lnbcrt…" begins like "lnbc…": what follows the prefix must be an amount or nothing
  const amount = new RegExp(`^ln${PREFIX[network]}(.*)$`).exec(prefix)?.[1];
  if (amount !== undefined && /^[1-9]\d{0,17}p$/.test(amount) && !amount.endsWith('0p'))
    return { problem: 'the amount of this invoice is no whole number of thousandths of a satoshi' };
  if (amount === undefined || !/^(?:[1-9]\d{0,17}(?:[mnu]|0p)?|)$/.test(amount))
    return { problem: `an invoice of this network starts with ln${PREFIX[network]} and its amount` };
  if (words.length < TIMESTAMP_WORDS + SIGNATURE_WORDS) return cut;
  const fields = fieldsOf(words.slice(TIMESTAMP_WORDS, -SIGNATURE_WORDS));
  if (fields === null) return cut;
  const paymentHash = hexOf(fields.get(TAG.hash), HASH_WORDS);
  if (paymentHash === null) return { problem: 'this invoice has no payment hash' };
  if (hexOf(fields.get(TAG.secret), HASH_WORDS) === null) return { problem: 'this invoice has no payment secret' };
  const descriptionHash = hexOf(fields.get(TAG.descriptionHash), HASH_WORDS);
  // LND reads no such invoice
  if (fields.has(TAG.description) === (descriptionHash !== null))
    return { problem: 'this invoice must have either a description or the hash of one' };
  const feature = unknownFeature(fields.get(TAG.features) ?? []);
  if (feature !== null) return { problem: `this invoice requires feature ${feature}, which is not known here` };
  if (numberOf(fields.get(TAG.cltv) ?? []) > MOST_CLTV) return { problem: 'this invoice would lock the payment for weeks' };
  const payee = payeeOf(prefix, words, fields);
  if (payee === null) return { problem: 'the signature of this invoice is wrong' };
  const expiry = fields.get(TAG.expiry);
  // as LND: one without a digit is 0, and not the usual one
  const seconds = numberOf(words.slice(0, TIMESTAMP_WORDS)) + (expiry === undefined ? USUAL_EXPIRY_S : numberOf(expiry));
  return {
    paymentHash,
    amountMsat: amount === '' ? null : msatOf(amount),
    expiresAtMs: Math.min(seconds * 1000, Date.UTC(9999, 0, 1)),
    payee,
    descriptionHash,
  };
}

/** The first of several fields of one kind counts, of hashes and secrets the first of the right length; null when a field is cut off. */
function fieldsOf(words: readonly number[]): Fields | null {
  const fields = new Map<number, readonly number[]>();
  const fixed: readonly number[] = [TAG.hash, TAG.descriptionHash, TAG.secret];
  for (let at = 0; at < words.length; ) {
    const [tag, high, low] = words.slice(at, at + 3);
    if (tag === undefined || high === undefined || low === undefined) return null;
    const end = at + 3 + high * 32 + low;
    if (end > words.length) return null;
    const value = words.slice(at + 3, end);
    const isSkipped = fixed.includes(tag) && value.length !== HASH_WORDS;
    if (!isSkipped && !fields.has(tag)) fields.set(tag, value);
    at = end;
  }
  return fields;
}

function hexOf(words: readonly number[] | undefined, length: number): string | null {
  if (words === undefined || words.length !== length) return null;
  const bytes = bech32.fromWordsUnsafe([...words]);
  return bytes === undefined || bytes === null ? null : Buffer.from(bytes).toString('hex');
}

function numberOf(words: readonly number[]): number {
  return words.reduce((value, word) => Math.min(value * 32 + word, Number.MAX_SAFE_INTEGER / 64), 0);
}

function msatOf(amount: string): bigint {
  const unit = amount.slice(-1);
  const divisor = DIVISORS[unit];
  return divisor === undefined ? BigInt(amount) * MSAT_PER_BITCOIN : (BigInt(amount.slice(0, -1)) * MSAT_PER_BITCOIN) / divisor;
}

/** The lowest required (even) feature that is not known; null when there is none. */
function unknownFeature(words: readonly number[]): number | null {
  for (let bit = 0; bit < words.length * 5; bit += 1) {
    const word = words[words.length - 1 - Math.floor(bit / 5)] ?? 0;
    if (((word >> (bit % 5)) & 1) === 1 && bit % 2 === 0 && !KNOWN_FEATURES.includes(bit)) return bit;
  }
  return null;
}

/** The key that has signed it (recovered), which must be the one that the invoice names where it names one. */
function payeeOf(prefix: string, words: readonly number[], fields: Fields): string | null {
  const signature = bech32.fromWordsUnsafe([...words.slice(-SIGNATURE_WORDS)]);
  if (signature === undefined || signature === null || signature.length !== 65) return null;
  const signed = createHash('sha256')
    .update(prefix)
    .update(packed(words.slice(0, -SIGNATURE_WORDS)))
    .digest();
  try {
    const recovered = Uint8Array.from([signature[64] ?? 0, ...signature.subarray(0, 64)]);
    const key = secp256k1.recoverPublicKey(recovered, signed, { prehash: false });
    const payee = Buffer.from(key).toString('hex');
    const named = hexOf(fields.get(TAG.payee), NODE_ID_WORDS);
    return named === null || named === payee ? payee : null;
  } catch {
    return null;
  }
}

/** 5-bit words as bytes, filled up with zeros. */
function packed(words: readonly number[]): Uint8Array {
  const bits = words.map((word) => word.toString(2).padStart(5, '0')).join('');
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
  return Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 2));
}
