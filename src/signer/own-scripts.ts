// The output scripts of the signer's own keys, derived from an account's public key: what inputs spend, and where change goes.

import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { HDKey } from '@scure/bip32';
import { p2pkh, p2wpkh } from '@scure/btc-signer';
import { BIP32_VERSIONS } from '../core/account-key.ts';
import { type EvmCode, type Network, type UtxoCode, utxoRow } from '../core/currency.ts';

/** The script of a compressed public key, in the form of the currency's addresses. */
export function scriptOf(currency: UtxoCode, publicKey: Uint8Array): Uint8Array {
  switch (utxoRow(currency).utxo.addressKind) {
    case 'p2wpkh':
      return p2wpkh(publicKey).script;
    case 'p2pkh':
    case 'cashaddr-p2pkh':
      return p2pkh(publicKey).script;
  }
}

/** Makes the function from a chain (0 receiving, 1 change) and an index to the script. */
export function scriptsOf(account: {
  readonly currency: UtxoCode;
  readonly network: Network;
  readonly xpub: string;
}): (chain: 0 | 1, index: number) => Uint8Array {
  const key = HDKey.fromExtendedKey(account.xpub, account.network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test);
  const chains = [key.deriveChild(0), key.deriveChild(1)] as const;
  return (chain, index) => {
    const { publicKey } = chains[chain].deriveChild(index);
    if (publicKey === null) throw new Error('a derived key without a public key');
    return scriptOf(account.currency, publicKey);
  };
}

type EvmAccount = { readonly currency: EvmCode; readonly network: Network; readonly xpub: string };

/** An address of an account on Ethereum's chain, 0x and 40 digits, lower case. */
export function evmAddressAt(account: EvmAccount, chain: 0 | 1, index: number): string {
  const key = HDKey.fromExtendedKey(account.xpub, account.network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test);
  const { publicKey } = key.deriveChild(chain).deriveChild(index);
  if (publicKey === null) throw new Error('a derived key without a public key');
  const point = secp256k1.Point.fromBytes(publicKey).toBytes(false);
  return `0x${Buffer.from(keccak_256(point.subarray(1)))
    .toString('hex')
    .slice(-40)}`;
}

/** The address from which payouts of a currency on Ethereum's chain leave: the first of chain 1. */
export const hotAddressOf = (account: EvmAccount): string => evmAddressAt(account, 1, 0);
