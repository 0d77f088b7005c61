// Extended keys (BIP32): their version bytes, and what can be wrong with an account-level public key or with one of its indexes. No message
// ever carries the key's text: it might be a private key.

/** BIP32's version bytes of extended keys, which every currency has; the currencies' own forms stand in their files (`extendedKeys`). */
export const BIP32_VERSIONS = {
  mainnet: { public: 0x0488b21e, private: 0x0488ade4 },
  test: { public: 0x043587cf, private: 0x04358394 },
} as const;

/** BIP32 defines no index from here on (those above are hardened). */
export const END_OF_INDEXES = 2 ** 31;
/**
 * A key in use needs this many more indexes: the signer passes over a million when its journal was lost, and over thousands at each start. More
 * than one database will ever give out.
 */
export const NEEDED_INDEXES = 10_000_000;

/** An index for which BIP32 defines no child key (IL ≥ n, or the point at infinity): the derivation goes on with the next index. */
export class UnderivableIndex extends Error {
  readonly index: number;
  constructor(index: number) {
    super(`no key exists at index ${index} of this account (BIP32): take the next one`);
    this.name = 'UnderivableIndex';
    this.index = index;
  }
}

export type AccountKeyFault = 'private' | 'malformed' | 'wrong-network' | 'wrong-currency' | 'wrong-depth' | 'not-on-curve';

/** A text that cannot serve as an account-level extended public key of a currency on a network. */
export class AccountKeyProblem extends Error {
  readonly fault: AccountKeyFault;
  constructor(fault: AccountKeyFault, message: string) {
    super(message);
    this.name = 'AccountKeyProblem';
    this.fault = fault;
  }
}
