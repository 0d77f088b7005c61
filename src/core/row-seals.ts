// What is sealed of the rows by which somebody signs in or by which a payout is let through: a seal is made by a key outside the database, so a
// row that was written with the database's password alone is accepted by nobody.
import type { Scope } from './credentials.ts';

export type SealFields = readonly (string | readonly string[] | null)[];

/** Seals (HMAC-SHA-256, RFC 2104). The first field says what kind of row it is. */
export type RowSeals = {
  seal(fields: SealFields): Uint8Array;
  /** Null = the row has no seal. */
  fits(fields: SealFields, seal: Uint8Array | null): boolean;
  /** Whether there is a key here; `seal` makes one where it may. */
  isKnown(): boolean;
  /** Tells the operator of a row whose seal does not fit. */
  report(what: string): void;
};

/** The seal of a row that changes, and the number of its change; `isNewest`: no later one was ever written. */
export type StoredSeal = { readonly seal: Uint8Array | null; readonly version: bigint; readonly isNewest: boolean };

export type SealedUser = {
  readonly usernameKey: string;
  readonly merchantId: bigint;
  readonly passwordHash: string;
  readonly scopes: readonly Scope[];
};

/** What counts the changes of a user, and of a merchant's settings. */
export const userSubject = (usernameKey: string): string => `user ${usernameKey}`;
/** What counts the changes of a merchant's settings: the other kind of subject beside {@link userSubject}. */
export const settingsSubject = (merchantId: bigint): string => `settings ${merchantId}`;

/**
 * What is sealed of a user: name, merchant, password hash, scopes, and the number of the change, so that an older row does not fit again.
 */
export const userFields = (user: SealedUser, version: bigint): SealFields => [
  'user',
  user.usernameKey,
  user.merchantId.toString(),
  user.passwordHash,
  user.scopes,
  version.toString(),
];

/** Whose sign-in it is never changes. */
export const signInFields = (id: string, usernameKey: string): SealFields => ['sign-in', id, usernameKey];

/** What is sealed of a public key by which access tokens are checked: its `kid` and its PEM. */
export const signingKeyFields = (kid: string, publicKeyPem: string): SealFields => ['signing key', kid, publicKeyPem];

/** A price as the process that fetched it dated it: an older one that is put back is as old as it says. @param usd in its shortest spelling */
export const rateFields = (currency: string, usd: string, atMs: number): SealFields => ['rate', currency, usd, atMs.toString()];

/** Whether a user is as it was sealed last. */
export function isSealedUser(seals: RowSeals, user: SealedUser, { seal, version, isNewest }: StoredSeal): boolean {
  return isNewest && seals.fits(userFields(user, version), seal);
}
