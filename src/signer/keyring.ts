// The accounts of the signer's seed, opened when first needed, so that a seed made while the signer runs is found. The seed itself is wiped
// as soon as the public keys are known, and opened again for each signature.
import type { HDKey } from '@scure/bip32';
import type { CurrencyCode, Network } from '../core/currency.ts';
import type { SignerAccount } from '../core/signer-wire.ts';
import { accountsOf, withAccount } from './accounts.ts';
import { createSeed, hasSeed, openSeed, type Passphrase, SeedTrouble } from './seed-file.ts';

export type Keyring = {
  readonly network: Network;
  /** The signer's accounts; null while there is no seed. Throws SeedTrouble when there is one that does not open. */
  accounts(): Promise<readonly SignerAccount[] | null>;
  /**
   * Runs the work with the private key of a currency's account, which is wiped afterwards; null while there is no seed. Throws SeedTrouble.
   */
  spend<T>(currency: CurrencyCode, work: (account: HDKey) => T): Promise<T | null>;
};

export type KeyringOptions = {
  /** Folder of the seed file. */
  readonly folder: string;
  readonly network: Network;
  /** Null when the operator set none and the network needs one. */
  readonly passphrase: Passphrase | null;
  /** Makes the seed when there is none (the sandbox). */
  readonly makesItsOwn: boolean;
};

/** The accounts of the seed in a folder; nothing is opened before it is needed. */
export function createKeyring(options: KeyringOptions): Keyring {
  let opening: Promise<readonly SignerAccount[] | null> | null = null;
  async function open(): Promise<readonly SignerAccount[] | null> {
    const entropy = await findEntropy(options);
    if (entropy === null) return null;
    try {
      return accountsOf(entropy, options.network);
    } finally {
      entropy.fill(0);
    }
  }
  return {
    network: options.network,
    async accounts() {
      opening ??= open();
      try {
        const accounts = await opening;
        if (accounts === null) opening = null;
        return accounts;
      } catch (error) {
        opening = null;
        throw error;
      }
    },
    async spend(currency, work) {
      const entropy = await findEntropy(options);
      if (entropy === null) return null;
      try {
        return withAccount(entropy, options.network, currency, work);
      } finally {
        entropy.fill(0);
      }
    },
  };
}

async function findEntropy(options: KeyringOptions): Promise<Uint8Array | null> {
  const { folder, network, passphrase } = options;
  if (!(await hasSeed(folder))) {
    if (!options.makesItsOwn) return null;
    try {
      return await createSeed(folder, network, passphraseOf(options));
    } catch (error) {
      if (!(error instanceof SeedTrouble) || error.fault !== 'exists') throw error;
    }
  }
  return openSeed(folder, network, passphrase ?? passphraseOf(options));
}

function passphraseOf(options: KeyringOptions): Passphrase {
  if (options.passphrase !== null) return options.passphrase;
  throw new SeedTrouble('passphrase', `the seed in ${options.folder} opens with BURSAR_SIGNER_PASSPHRASE (or _FILE): set it`);
}
