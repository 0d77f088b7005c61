// Reads the bytes of a signed transaction (EIP-1559) as a node does before it takes it: its form, its chain, and who signed it.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { DYNAMIC_FEE, signedBytes, unsignedBytes } from '../../core/evm/transaction.ts';
import { CHAIN_ID, type EvmTransaction, keccak } from './transaction.ts';

type Item = Buffer | readonly Item[];
const FIELDS = 12;

/** Half of the curve's order: a signature with a larger s is refused (EIP-2). */
const HALF_ORDER = secp256k1.Point.Fn.ORDER / 2n;

/** The transaction; null for bytes that no node would take. */
export function readRaw(raw: string): EvmTransaction | null {
  if (!/^0x([0-9a-f]{2})+$/.test(raw)) return null;
  const bytes = Buffer.from(raw.slice(2), 'hex');
  if (bytes[0] !== DYNAMIC_FEE) return null;
  const read = itemAt(bytes, 1);
  if (read === null || read.end !== bytes.length || !Array.isArray(read.item) || read.item.length !== FIELDS) return null;
  const [chain, nonce, tip, maxFee, gas, to, value, input, , yParity, r, s] = read.item as readonly Buffer[];
  if (number(chain) !== BigInt(CHAIN_ID) || to?.length !== 20) return null;
  const call = {
    chainId: CHAIN_ID,
    nonce: Number(number(nonce)),
    tip: number(tip),
    maxFee: number(maxFee),
    gas: Number(number(gas)),
    to: `0x${to.toString('hex')}`,
    value: number(value),
    input: `0x${(input as Buffer).toString('hex')}`,
  };
  const signature = { yParity: Number(number(yParity)), r: number(r), s: number(s) };
  // one spelling only: the bytes that were sent are those that are hashed
  if (signature.s > HALF_ORDER || !signedBytes(call, signature).equals(bytes)) return null;
  const from = senderOf(keccak_256(unsignedBytes(call)), signature);
  if (from === null) return null;
  const word = (part: bigint): string => `0x${part.toString(16).padStart(64, '0')}`;
  const { chainId: _, ...rest } = call;
  return {
    ...rest,
    hash: keccak(bytes),
    from,
    signature: { yParity: signature.yParity, r: word(signature.r), s: word(signature.s) },
  };
}

function senderOf(
  digest: Uint8Array,
  { yParity, r, s }: { readonly yParity: number; readonly r: bigint; readonly s: bigint },
): string | null {
  try {
    const point = new secp256k1.Signature(r, s, yParity).recoverPublicKey(digest);
    return `0x${keccak(point.toBytes(false).subarray(1)).slice(-40)}`;
  } catch {
    return null;
  }
}

const number = (bytes: Buffer | undefined): bigint =>
  bytes === undefined || bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString('hex')}`);

/** One RLP item and where it ends; null when it is cut off. */
function itemAt(bytes: Buffer, at: number): { readonly item: Item; readonly end: number } | null {
  const first = bytes[at];
  if (first === undefined) return null;
  if (first < 0x80) return { item: bytes.subarray(at, at + 1), end: at + 1 };
  const isList = first >= 0xc0;
  const short = first - (isList ? 0xc0 : 0x80);
  const lengthBytes = short < 56 ? 0 : short - 55;
  const start = at + 1 + lengthBytes;
  const length = lengthBytes === 0 ? short : Number(number(bytes.subarray(at + 1, start)));
  const end = start + length;
  if (end > bytes.length) return null;
  if (!isList) return { item: bytes.subarray(start, end), end };
  const items: Item[] = [];
  for (let next = start; next < end; ) {
    const read = itemAt(bytes, next);
    if (read === null || read.end > end) return null;
    items.push(read.item);
    next = read.end;
  }
  return { item: items, end };
}
