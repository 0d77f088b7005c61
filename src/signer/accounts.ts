// The signer's accounts: the path of each currency, and the account-level public keys that a seed gives.

import { pbkdf2Sync } from 'node:crypto';
import { HDKey } from '@scure/bip32';
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { BIP32_VERSIONS } from '../core/account-key.ts';
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode, chainRow, type Network } from '../core/currency.ts';
import type { SignerAccount } from '../core/signer-wire.ts';

const HARDENED = 0x8000_0000;

/** The currencies that the signer has an account for. */
export const ACCOUNT_CODES: readonly CurrencyCode[] = CURRENCY_CODES;

/**
 * The BIP44 path of a currency's account. Outside mainnet every currency has the coin type 1 (SLIP-44), so currencies would share keys and
 * therefore output scripts: there the account number is the currency's own coin type, plus its account on mainnet. Ether and each of its
 * tokens have accounts of their own, because nobody may get an address twice.
 */
export function accountPath(currency: CurrencyCode, network: Network): string {
  const { purpose, slip44 } = chainRow(currency);
  const account = CURRENCIES[currency].evm?.account ?? 0;
  return network === 'mainnet' ? `m/${purpose}'/${slip44}'/${account}'` : `m/${purpose}'/1'/${slip44 + account}'`;
}

/** The 24 words of 256 bits (BIP39, English). */
export function mnemonicOf(entropy: Uint8Array): string {
  return entropyToMnemonic(entropy, wordlist);
}

/** The 256 bits of 24 such words, in any case and white space; null for a wrong number of words, an unknown word, or a wrong checksum. */
export function entropyOf(text: string): Uint8Array | null {
  const words = text.trim().toLowerCase().split(/\s+/);
  if (words.length !== 24) return null;
  try {
    return mnemonicToEntropy(words.join(' '), wordlist);
  } catch {
    return null;
  }
}

/** The seed of words without a passphrase (BIP39), computed by OpenSSL: its 2,048 rounds take 2 ms, in JavaScript they take 70. */
function seedOf(mnemonic: string): Buffer {
  return pbkdf2Sync(mnemonic.normalize('NFKD'), 'mnemonic', 2048, 64, 'sha512');
}

/**
 * The account-level public keys of a seed. The seed and every private key on the way are wiped before this returns; the copies that the
 * libraries make while they derive, and the words (JavaScript cannot wipe strings), stay in memory until that is used again.
 */
export function accountsOf(entropy: Uint8Array, network: Network): readonly SignerAccount[] {
  const seed = seedOf(mnemonicOf(entropy));
  const root = HDKey.fromMasterSeed(seed, network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test);
  const fingerprint = root.fingerprint.toString(16).padStart(8, '0');
  try {
    return ACCOUNT_CODES.map((currency) => {
      const path = accountPath(currency, network);
      return { currency, network, path, xpub: publicKeyAt(root, path), fingerprint };
    });
  } finally {
    seed.fill(0);
    root.wipePrivateData();
  }
}

/**
 * Runs the work with the private key of a currency's account; the seed, the account and everything on the way are wiped when it returns.
 * @param work must not keep the key, and must wipe what it derives from it
 */
export function withAccount<T>(entropy: Uint8Array, network: Network, currency: CurrencyCode, work: (account: HDKey) => T): T {
  const seed = seedOf(mnemonicOf(entropy));
  const root = HDKey.fromMasterSeed(seed, network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test);
  seed.fill(0);
  try {
    const account = keyAt(root, accountPath(currency, network));
    try {
      return work(account);
    } finally {
      account.wipePrivateData();
    }
  } finally {
    root.wipePrivateData();
  }
}

function publicKeyAt(root: HDKey, path: string): string {
  const key = keyAt(root, path);
  const xpub = key.publicExtendedKey;
  key.wipePrivateData();
  return xpub;
}

/** Step by step, so that the keys between the root and the account are wiped too. */
function keyAt(root: HDKey, path: string): HDKey {
  let key = root;
  for (const step of path.split('/').slice(1)) {
    const child = key.deriveChild(Number.parseInt(step, 10) + (step.endsWith("'") ? HARDENED : 0));
    if (key !== root) key.wipePrivateData();
    key = child;
  }
  return key;
}
