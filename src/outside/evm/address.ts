// How Ethereum's addresses are written: 20 bytes in hexadecimal digits, with the checksum of EIP-55.
import { keccak_256 } from '@noble/hashes/sha3.js';

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
