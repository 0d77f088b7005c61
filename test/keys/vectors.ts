// Published vectors of derivation and addresses: BIP84, BIP44 and the CashAddr specification, mnemonic "abandon … about".
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync } from '@scure/bip39';
import { type Network, type UtxoCode, utxoRow } from '../../src/core/currency.ts';

export const MNEMONIC = 'abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about';

/** Version bytes of the canonical forms: xpub on mainnet, tpub elsewhere. */
export function canonicalVersions(network: Network): { public: number; private: number } {
  return network === 'mainnet' ? { public: 0x0488b21e, private: 0x0488ade4 } : { public: 0x043587cf, private: 0x04358394 };
}

/** The account at m/purpose'/coin'/0' of the test mnemonic, with BIP39's passphrase. */
export function account(currency: UtxoCode, network: Network = 'mainnet', passphrase = ''): HDKey {
  const { purpose, slip44 } = utxoRow(currency).utxo;
  const coinType = network === 'mainnet' ? slip44 : 1;
  return HDKey.fromMasterSeed(mnemonicToSeedSync(MNEMONIC, passphrase), canonicalVersions(network)).derive(
    `m/${purpose}'/${coinType}'/0'`,
  );
}

let regtest: HDKey | null = null;
const regtestKeys = new Map<string, string>();
/** The public key on regtest of an account of the test mnemonic, by its path: derived once, because its 2,048 rounds of BIP39 take a tenth of a second. */
export function regtestAccountKey(path: string): string {
  regtest ??= HDKey.fromMasterSeed(mnemonicToSeedSync(MNEMONIC), canonicalVersions('regtest'));
  const key = regtestKeys.get(path) ?? regtest.derive(path).publicExtendedKey;
  regtestKeys.set(path, key);
  return key;
}

/** First receiving addresses of that mnemonic: BIP84's own for BTC, the others as wallets (Ian Coleman's page) show them. */
export const FIRST_ADDRESSES: Record<UtxoCode | 'ETH', readonly string[]> = {
  BTC: ['bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu', 'bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g'],
  LTC: ['ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh'],
  BCH: ['bitcoincash:qqyx49mu0kkn9ftfj6hje6g2wfer34yfnq5tahq3q6'],
  DASH: ['XoJA8qE3N2Y3jMLEtZ3vcN42qseZ8LvFf5'],
  DOGE: ['DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC'],
  ETH: ['0x9858EfFD232B4033E47d90003D41EC34EcaEda94'],
};
/** The account keys that BIP84 publishes for this mnemonic. */
export const BIP84_ZPUB =
  'zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs';
export const BIP84_ZPRV =
  'zprvAdG4iTXWBoARxkkzNpNh8r6Qag3irQB8PzEMkAFeTRXxHpbF9z4QgEvBRmfvqWvGp42t42nvgGpNgYSJA9iefm1yYNZKEm7z6qUWCroSQnE';
