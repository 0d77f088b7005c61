// Transactions of the simulated Ethereum chain: EIP-1559's, signed by keys of the sandbox, in the bytes and with the hash that every node
// would give them.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { signedBytes, unsignedBytes } from '../../core/evm/transaction.ts';

/** 0x and lower-case digits. */
export type EvmTransaction = {
  readonly hash: string;
  readonly from: string;
  readonly nonce: number;
  readonly to: string;
  readonly value: bigint;
  readonly input: string;
  readonly maxFee: bigint;
  readonly tip: bigint;
  readonly gas: number;
  readonly signature: { readonly yParity: number; readonly r: string; readonly s: string };
};
export type Unsigned = Pick<EvmTransaction, 'nonce' | 'to' | 'value' | 'input' | 'maxFee' | 'tip' | 'gas'>;

export const CHAIN_ID = 31_337;
export const TIP = 1_000_000_000n;

/** Keccak-256 (not NIST's SHA3-256) as `0x…`; of a text its UTF-8. */
export const keccak = (bytes: Uint8Array | string): string =>
  `0x${Buffer.from(keccak_256(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)).toString('hex')}`;

/** What holds ether in the sandbox is no secret: it exists in this process only. */
export function secretOf(name: string): Buffer {
  return Buffer.from(keccak_256(Buffer.from(`bursar sandbox ${name}`)));
}
/** The address of a secp256k1 private key: the last 20 bytes of its public key's Keccak-256, in lower case. */
export function addressOf(secret: Uint8Array): string {
  return `0x${keccak(secp256k1.getPublicKey(secret, false).subarray(1)).slice(-40)}`;
}

/** Signs a transaction of type 2 (EIP-1559) for the sandbox's chain id; its hash and sender come with it. */
export function signTransaction(unsigned: Unsigned, secret: Uint8Array): EvmTransaction {
  const { nonce, to, value, input, maxFee, tip, gas } = unsigned;
  const call = { chainId: CHAIN_ID, nonce, tip, maxFee, gas, to, value, input };
  const digest = keccak_256(unsignedBytes(call));
  const recovered = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' });
  const yParity = recovered[0] as number;
  const word = (at: number): string => `0x${Buffer.from(recovered.subarray(at, at + 32)).toString('hex')}`;
  const [r, s] = [word(1), word(33)];
  const hash = keccak(signedBytes(call, { yParity, r: BigInt(r), s: BigInt(s) }));
  return { ...unsigned, hash, from: addressOf(secret), signature: { yParity, r, s } };
}
