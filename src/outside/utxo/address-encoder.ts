// From a public key to the address of a currency, whatever its family.
import { type CurrencyCode, isUtxo, type Network } from '../../core/currency.ts';
import { evmAddress } from '../evm/key-address.ts';
import { addressEncoder, type EncodedAddress } from './address.ts';

/** Makes the function from a compressed public key to the currency's address and output script. */
export function encoderOf(currency: CurrencyCode, network: Network): (publicKey: Uint8Array) => EncodedAddress {
  return isUtxo(currency) ? addressEncoder(currency, network) : evmAddress;
}
