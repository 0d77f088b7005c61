// The port behind Context.ports.addresses: derivers by account key, and the same derivation once more by second libraries (KEY-7), so that
// a fault of one library cannot give out addresses that nobody can spend from. Made in main/wire.ts.
import type { HDKey } from '@scure/bip32';
import { chainNetwork, type Network, type UtxoCode, utxoRow } from '../core/currency.ts';
import type { AddressDerivers, DerivedAddress } from '../core/ports.ts';
import { createAddressDeriver, readAccountKey } from './utxo-derive.ts';

/** @param network the network whose addresses are derived; keys of another one are refused */
export function createAddressDerivers(network: Network): AddressDerivers {
  return {
    of: (currency, xpub) => createAddressDeriver({ currency, network, xpub }),
    rederive: (currency, xpub, index) => rederive(currency, network, xpub, index),
  };
}

/** Derivation by @scure/bip32, address by @scure/btc-signer, or @bitauth/libauth for Bitcoin Cash; about a millisecond. */
async function rederive(currency: UtxoCode, network: Network, xpub: string, index: number): Promise<DerivedAddress> {
  const account = readAccountKey(currency, network, xpub);
  const { HDKey: Key } = await import('@scure/bip32');
  const versions =
    network === 'mainnet' ? { public: 0x0488b21e, private: 0x0488ade4 } : { public: 0x043587cf, private: 0x04358394 };
  const key: HDKey = Key.fromExtendedKey(account.xpub, versions).deriveChild(0).deriveChild(index);
  if (key.publicKey === null) throw new Error('a derived key without a public key');
  const { addressKind, address } = utxoRow(currency).utxo;
  const parameters = address[chainNetwork(network)];
  const { p2pkh, p2wpkh } = await import('@scure/btc-signer');
  const coin = {
    bech32: parameters.bech32 ?? 'none',
    pubKeyHash: parameters.pubKeyHash,
    scriptHash: parameters.scriptHash,
    wif: parameters.wif,
  };
  const payment = addressKind === 'p2wpkh' ? p2wpkh(key.publicKey, coin) : p2pkh(key.publicKey, coin);
  if (addressKind !== 'cashaddr-p2pkh') return { address: payment.address ?? '', script: payment.script, index };
  const { encodeCashAddress } = await import('@bitauth/libauth');
  const prefix = parameters.cashaddr as 'bitcoincash' | 'bchtest' | 'bchreg';
  const cash = encodeCashAddress({ prefix, type: 'p2pkh', payload: payment.hash, throwErrors: true });
  return { address: cash.address, script: payment.script, index };
}
