// The rows of sign-ins (one family of tokens each) and of the public keys that verify tokens. Hashes are SHA-256 of a token's identifier.
import type { VerificationKey } from '../../core/ports.ts';
import type { SealedUser, StoredSeal } from '../../core/row-seals.ts';
import type { Sql } from '../postgres/connect.ts';
import { SEALED_USER, type SealedUserColumns, sealedUserFrom } from './users.ts';

export type RevokedBecause = 'signed_out' | 'refresh_token_reused' | 'credentials_changed';

/** The hashes of a pair's tokens. */
export type PairHashes = { readonly refreshHash: Buffer; readonly accessHash: Buffer; readonly expiresAt: Date };

/** Inserts a sign-in, and deletes the expired ones of the same user. */
export async function insertSignIn(
  sql: Sql,
  row: PairHashes & { readonly id: string; readonly userId: bigint; readonly createdAt: Date; readonly seal: Uint8Array },
): Promise<void> {
  await sql.query({
    name: 'sign_in_insert',
    text: `with gone as (delete from sign_ins where user_id = $2 and expires_at < $3)
      insert into sign_ins (id, user_id, created_at, expires_at, refresh_hash, access_hash, seal)
        values ($1, $2, $3, $4, $5, $6, $7)`,
    values: [row.id, row.userId, row.createdAt, row.expiresAt, row.refreshHash, row.accessHash, row.seal],
  });
}

export type SignInState = {
  readonly affiliateId: string;
  readonly userId: bigint;
  readonly suspended: boolean;
  readonly createdAtMs: number;
  /** Of the sign-in. */
  readonly seal: Uint8Array | null;
  readonly user: SealedUser & StoredSeal;
};

/** Records that this access token was presented (when it is the newest) and returns whose it is; null when the sign-in is revoked or unknown. */
export async function presentAccessToken(
  sql: Sql,
  token: { readonly signInId: string; readonly accessHash: Buffer },
): Promise<SignInState | null> {
  const { rows } = await sql.query<
    SealedUserColumns & { affiliate_id: string; user_id: bigint; suspended: boolean; created_at: Date; seal: Buffer | null }
  >({
    name: 'sign_in_present',
    text: `with shown as (update sign_ins set presented = true where id = $1 and access_hash = $2 and not presented)
      select m.affiliate_id, u.id as user_id, m.suspended_at is not null as suspended, s.created_at, s.seal, ${SEALED_USER}
        from sign_ins s join users u on u.id = s.user_id join merchants m on m.id = u.merchant_id
       where s.id = $1 and s.revoked_at is null`,
    values: [token.signInId, token.accessHash],
  });
  const row = rows[0];
  if (row === undefined) return null;
  const { affiliate_id: affiliateId, user_id: userId, suspended, created_at: createdAt, seal } = row;
  return { affiliateId, userId, suspended, createdAtMs: createdAt.getTime(), seal, user: sealedUserFrom(row) };
}

/** Records that a token of the newest pair was presented to a refresh that is refused. */
export async function notePresented(sql: Sql, signInId: string, hash: Buffer): Promise<void> {
  await sql.query({
    name: 'sign_in_note_presented',
    text: 'update sign_ins set presented = true where not presented and id = $1 and (access_hash = $2 or refresh_hash = $2)',
    values: [signInId, hash],
  });
}

/** What a refresh is decided by: the newest pair and the one before. */
export type Rotation = {
  readonly refreshHash: Buffer;
  readonly accessHash: Buffer;
  readonly presented: boolean;
  readonly previous: { readonly refreshHash: Buffer; readonly consumedAt: Date; readonly sealedPair: Buffer } | null;
  readonly handedOutAgain: boolean;
  readonly gracesInARow: number;
};

/** Locks a sign-in that is not revoked; null when there is none. */
export async function lockRotation(
  sql: Sql,
  signInId: string,
): Promise<
  | (Rotation & {
      readonly affiliateId: string;
      readonly suspended: boolean;
      readonly usernameKey: string;
      readonly seal: Uint8Array | null;
    })
  | null
> {
  const { rows } = await sql.query<{
    refresh_hash: Buffer;
    access_hash: Buffer;
    presented: boolean;
    previous_hash: Buffer | null;
    consumed_at: Date;
    sealed_pair: Buffer;
    handed_out_again: boolean;
    graces_in_a_row: number;
    affiliate_id: string;
    suspended: boolean;
    username_key: string;
    seal: Buffer | null;
  }>({
    name: 'sign_in_lock',
    text: `select u.username_key, s.seal, s.refresh_hash, s.access_hash, s.presented, s.previous_hash, s.consumed_at, s.sealed_pair, s.handed_out_again,
                  s.graces_in_a_row, m.affiliate_id, m.suspended_at is not null as suspended
             from sign_ins s join users u on u.id = s.user_id join merchants m on m.id = u.merchant_id
            where s.id = $1 and s.revoked_at is null for update of s`,
    values: [signInId],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    refreshHash: row.refresh_hash,
    accessHash: row.access_hash,
    presented: row.presented,
    previous:
      row.previous_hash === null
        ? null
        : { refreshHash: row.previous_hash, consumedAt: row.consumed_at, sealedPair: row.sealed_pair },
    handedOutAgain: row.handed_out_again,
    gracesInARow: row.graces_in_a_row,
    affiliateId: row.affiliate_id,
    suspended: row.suspended,
    usernameKey: row.username_key,
    seal: row.seal,
  };
}

/** Writes the newest pair of a locked sign-in, and the pair that it replaces. */
export async function rotateSignIn(
  sql: Sql,
  signInId: string,
  next: PairHashes & { readonly gracesInARow: number; readonly consumedAt: Date; readonly sealedPair: Buffer },
): Promise<void> {
  await sql.query({
    name: 'sign_in_rotate',
    text: `update sign_ins set previous_hash = refresh_hash, refresh_hash = $2, access_hash = $3, expires_at = $4, graces_in_a_row = $5,
                  consumed_at = $6, sealed_pair = $7, presented = false, handed_out_again = false
            where id = $1`,
    values: [signInId, next.refreshHash, next.accessHash, next.expiresAt, next.gracesInARow, next.consumedAt, next.sealedPair],
  });
}

/** Records that the newest pair of a locked sign-in is given again. */
export async function handOutAgain(
  sql: Sql,
  signInId: string,
  next: { readonly gracesInARow: number; readonly presented: boolean },
): Promise<void> {
  await sql.query({
    name: 'sign_in_hand_out_again',
    text: 'update sign_ins set handed_out_again = true, graces_in_a_row = $2, presented = $3 where id = $1',
    values: [signInId, next.gracesInARow, next.presented],
  });
}

/** Revokes one sign-in for good; the first reason is kept. */
export async function revokeSignIn(sql: Sql, signInId: string, because: RevokedBecause, at: Date): Promise<void> {
  await sql.query({
    name: 'sign_in_revoke',
    text: 'update sign_ins set revoked_at = $2, revoked_because = $3, sealed_pair = null, previous_hash = null, consumed_at = null where id = $1 and revoked_at is null',
    values: [signInId, at, because],
  });
}

/** Revokes every sign-in of a user; returns their ids. */
export async function revokeSignInsOf(sql: Sql, userId: bigint, because: RevokedBecause, at: Date): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'sign_in_revoke_user',
    text: `update sign_ins set revoked_at = $2, revoked_because = $3, sealed_pair = null, previous_hash = null, consumed_at = null
            where user_id = $1 and revoked_at is null returning id`,
    values: [userId, at, because],
  });
  return rows.map((row) => row.id);
}

/** Whether a sign-in has not ended: its user has neither signed out nor been given other credentials since. */
export async function isSignInOpen(sql: Sql, signInId: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'sign_in_is_open',
    text: 'select 1 from sign_ins where id = $1 and revoked_at is null',
    values: [signInId],
  });
  return rowCount === 1;
}

/** Stores a public key (repeating it is harmless), and deletes those that no valid token was signed with. */
export async function publishSigningKey(
  sql: Sql,
  key: VerificationKey & { readonly createdAtMs: number; readonly uselessAfterMs: number; readonly seal: Uint8Array },
  now: Date,
): Promise<void> {
  await sql.query({
    name: 'signing_key_publish',
    text: `with gone as (delete from signing_keys where useless_after < $5)
      insert into signing_keys (kid, public_key, created_at, useless_after, seal) values ($1, $2, $3, $4, $6) on conflict (kid) do nothing`,
    values: [key.kid, key.publicKeyPem, new Date(key.createdAtMs), new Date(key.uselessAfterMs), now, key.seal],
  });
}

/** The public key with this id; null when no process of ours has stored it. */
export async function findSigningKey(
  sql: Sql,
  kid: string,
): Promise<(VerificationKey & { readonly seal: Uint8Array | null }) | null> {
  const { rows } = await sql.query<{ public_key: string; seal: Buffer | null }>({
    name: 'signing_key_find',
    text: 'select public_key, seal from signing_keys where kid = $1',
    values: [kid],
  });
  return rows[0] === undefined ? null : { kid, publicKeyPem: rows[0].public_key, seal: rows[0].seal };
}
