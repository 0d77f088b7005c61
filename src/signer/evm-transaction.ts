// Signs a transaction of EIP-1559 with a deterministic signature (RFC 6979, low s) by @noble/curves, over Keccak-256 of its bytes.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { type EvmCall, signedBytes, unsignedBytes } from '../core/evm/transaction.ts';
import type { InputSigner, Signed } from './transaction.ts';

const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

export function signEvm(call: EvmCall, keys: Pick<InputSigner, 'withPrivateKey'>): Signed {
  const digest = keccak_256(unsignedBytes(call));
  const signature = keys.withPrivateKey(0, (privateKey) =>
    secp256k1.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' }),
  );
  const raw = signedBytes(call, {
    yParity: signature[0] as number,
    r: number(signature.subarray(1, 33)),
    s: number(signature.subarray(33, 65)),
  });
  return { raw: raw.toString('hex'), txid: `0x${Buffer.from(keccak_256(raw)).toString('hex')}`, vbytes: call.gas };
}
