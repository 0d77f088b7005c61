// The Ethereum address of a public key. Apart from how addresses are written, so that who only checks one does not load the curve.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { evmScript } from '../../core/currencies/evm.ts';
import { checksummed, keccakHex } from './address.ts';

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
