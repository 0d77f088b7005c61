// Transactions of the simulated Ethereum chain: EIP-1559's, signed by keys of the sandbox, in the bytes and with the hash that every node
// would give them.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';

/** 0x and lower-case digits. */
export type EvmTransaction = {
  readonly hash: string;
  readonly from: string;
  readonly nonce: number;
  readonly to: string;
  readonly value: bigint;
  readonly input: string;
  readonly maxFee: bigint;
  readonly gas: number;
  readonly signature: { readonly yParity: number; readonly r: string; readonly s: string };
};
export type Unsigned = Pick<EvmTransaction, 'nonce' | 'to' | 'value' | 'input' | 'maxFee' | 'gas'>;

/** EIP-2718's type of EIP-1559. */
const DYNAMIC_FEE = 2;
export const CHAIN_ID = 31_337;
export const TIP = 1_000_000_000n;

export const keccak = (bytes: Uint8Array | string): string =>
  `0x${Buffer.from(keccak_256(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)).toString('hex')}`;

/** What holds ether in the sandbox is no secret: it exists in this process only. */
export function secretOf(name: string): Buffer {
  return Buffer.from(keccak_256(Buffer.from(`bursar sandbox ${name}`)));
}
export function addressOf(secret: Uint8Array): string {
  return `0x${keccak(secp256k1.getPublicKey(secret, false).subarray(1)).slice(-40)}`;
}

export function signTransaction(unsigned: Unsigned, secret: Uint8Array): EvmTransaction {
  const { nonce, to, value, input, maxFee, gas } = unsigned;
  const fields = [CHAIN_ID, nonce, TIP, maxFee, gas, to, value, input, []] as const;
  const digest = keccak_256(typed(fields));
  const recovered = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' });
  const yParity = recovered[0] as number;
  const word = (at: number): string => `0x${Buffer.from(recovered.subarray(at, at + 32)).toString('hex')}`;
  const [r, s] = [word(1), word(33)];
  const hash = keccak(typed([...fields, yParity, BigInt(r), BigInt(s)]));
  return { ...unsigned, hash, from: addressOf(secret), signature: { yParity, r, s } };
}

type Item = number | bigint | string | readonly Item[];

const typed = (fields: readonly Item[]): Buffer => Buffer.concat([Buffer.of(DYNAMIC_FEE), rlp(fields)]);

/** RLP of numbers, of data (0x…) and of lists of these. */
export function rlp(item: Item): Buffer {
  if (typeof item === 'object') {
    const body = Buffer.concat(item.map(rlp));
    return Buffer.concat([lengthPrefix(body.length, 0xc0), body]);
  }
  const bytes = typeof item === 'string' ? Buffer.from(item.slice(2), 'hex') : numberBytes(BigInt(item));
  if (bytes.length === 1 && (bytes[0] as number) < 0x80) return bytes;
  return Buffer.concat([lengthPrefix(bytes.length, 0x80), bytes]);
}

function lengthPrefix(length: number, offset: number): Buffer {
  if (length < 56) return Buffer.of(offset + length);
  const size = numberBytes(BigInt(length));
  return Buffer.concat([Buffer.of(offset + 55 + size.length), size]);
}

/** Big-endian without leading zeros; none for zero. */
function numberBytes(number: bigint): Buffer {
  if (number === 0n) return Buffer.alloc(0);
  const digits = number.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}
