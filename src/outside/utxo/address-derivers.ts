// Derivation of addresses by account key, and the same derivation again by other libraries, so that a fault of one library cannot give out
// addresses that nobody can spend from.

import type { HDKey } from '@scure/bip32';
import { BIP32_VERSIONS } from '../../core/account-key.ts';
import { type CurrencyCode, chainNetwork, isUtxo, type Network, utxoRow } from '../../core/currency.ts';
import type { AddressDerivers, DerivedAddress } from '../../core/ports.ts';
import { evmAddress } from '../evm/key-address.ts';
import { createAddressDeriver, readAccountKey } from './derive.ts';

/** @param network the network whose addresses are derived; keys of another network are refused */
export function createAddressDerivers(network: Network): AddressDerivers {
  const chains = new Map<string, HDKey>();
  /** Chain 0 of an account, by @scure/bip32. */
  async function chainOf(currency: CurrencyCode, xpub: string): Promise<HDKey> {
    const known = chains.get(xpub);
    if (known !== undefined) return known;
    const { HDKey: Key } = await import('@scure/bip32');
    const account = readAccountKey(currency, network, xpub);
    const chain = Key.fromExtendedKey(
      account.xpub,
      network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test,
    ).deriveChild(0);
    chains.set(xpub, chain);
    return chain;
  }
  return {
    of: (currency, xpub) => createAddressDeriver({ currency, network, xpub }),
    ownOf: (currency, xpub) => createAddressDeriver({ currency, network, xpub, chain: 1 }),
    async rederive(currency, xpub, index) {
      const { publicKey } = (await chainOf(currency, xpub)).deriveChild(index);
      if (publicKey === null) throw new Error('a derived key without a public key');
      return { ...(await secondAddress(currency, network, publicKey)), index };
    },
  };
}

/** The address by @scure/btc-signer, or by @bitauth/libauth for Bitcoin Cash; on Ethereum's chain an address has no second way than its hash. */
async function secondAddress(
  currency: CurrencyCode,
  network: Network,
  publicKey: Uint8Array,
): Promise<Omit<DerivedAddress, 'index'>> {
  if (!isUtxo(currency)) return evmAddress(publicKey);
  const { addressKind, address } = utxoRow(currency).utxo;
  const { bech32, cashaddr, ...bytes } = address[chainNetwork(network)];
  const parameters = { bech32: bech32 ?? 'none', ...bytes };
  const { p2pkh, p2wpkh } = await import('@scure/btc-signer');
  switch (addressKind) {
    case 'p2wpkh':
      return plain(p2wpkh(publicKey, parameters));
    case 'p2pkh':
      return plain(p2pkh(publicKey, parameters));
    case 'cashaddr-p2pkh': {
      const { hash, script } = p2pkh(publicKey, parameters);
      const { encodeCashAddress } = await import('@bitauth/libauth');
      const prefix = cashaddr as 'bitcoincash' | 'bchtest' | 'bchreg';
      return { address: encodeCashAddress({ prefix, type: 'p2pkh', payload: hash, throwErrors: true }).address, script };
    }
  }
}

function plain({
  address = '',
  script,
}: {
  readonly address?: string;
  readonly script: Uint8Array;
}): Omit<DerivedAddress, 'index'> {
  return { address, script };
}
