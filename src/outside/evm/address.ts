// Ethereum's addresses: 20 bytes of the hash of a public key, written with the checksum of EIP-55.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { evmScript } from '../../core/currencies/evm.ts';

/** Keccak-256 (not SHA3-256) as 64 hexadecimal digits. */
export function keccakHex(bytes: Uint8Array): string {
  return Buffer.from(keccak_256(bytes)).toString('hex');
}

/** EIP-55. @param address 0x and 40 hexadecimal digits of any case */
export function checksummed(address: string): string {
  const lower = address.slice(-40).toLowerCase();
  const sum = keccakHex(Buffer.from(lower, 'latin1'));
  return `0x${Array.from(lower, (digit, at) => (Number.parseInt(sum[at] as string, 16) >= 8 ? digit.toUpperCase() : digit)).join('')}`;
}

/**
 * Why a text is no Ethereum address, in one sentence; null when it is one. A single case has no checksum, mixed case is the checksum
 * (EIP-55).
 */
export function addressProblem(text: string): string | null {
  const digits = /^0[xX]([0-9a-fA-F]{40})$/.exec(text)?.[1];
  if (digits === undefined) return 'an Ethereum address is 0x and 40 hexadecimal digits';
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase() || `0x${digits}` === checksummed(text)) return null;
  return 'the upper and lower case letters of this Ethereum address are not its checksum (EIP-55)';
}

/** The address of a public key, lower case. @param publicKey SEC 1, compressed or not */
export function addressOfKey(publicKey: Uint8Array): string {
  const point = publicKey.length === 65 ? publicKey : secp256k1.Point.fromBytes(publicKey).toBytes(false);
  return `0x${keccakHex(point.subarray(1)).slice(-40)}`;
}

/** The address of a public key with its checksum, and its form among the output scripts. */
export function evmAddress(publicKey: Uint8Array): { readonly address: string; readonly script: Uint8Array } {
  const address = addressOfKey(publicKey);
  return { address: checksummed(address), script: Buffer.from(evmScript(address), 'hex') };
}
