// The rows of users.
import type { Scope } from '../../core/credentials.ts';
import type { Sql } from '../postgres/connect.ts';

export type User = {
  readonly id: bigint;
  readonly affiliateId: string;
  readonly passwordHash: string;
  readonly suspended: boolean;
};

/** The user of a username's key (NFKC, case-folded), or null. */
export async function findUser(sql: Sql, usernameKey: string): Promise<User | null> {
  const { rows } = await sql.query<{ id: bigint; affiliate_id: string; password_hash: string; suspended: boolean }>({
    name: 'user_find',
    text: `select u.id, m.affiliate_id, u.password_hash, m.suspended_at is not null as suspended
             from users u join merchants m on m.id = u.merchant_id where u.username_key = $1`,
    values: [usernameKey],
  });
  const row = rows[0];
  return row === undefined
    ? null
    : { id: row.id, affiliateId: row.affiliate_id, passwordHash: row.password_hash, suspended: row.suspended };
}

/** Locks the user for the rest of the transaction if the password hash is still this one; false when it was changed. */
export async function holdCredentials(sql: Sql, user: { readonly id: bigint; readonly passwordHash: string }): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'user_hold',
    text: 'select 1 from users where id = $1 and password_hash = $2 for share',
    values: [user.id, user.passwordHash],
  });
  return rowCount === 1;
}

/** Inserts a user; false when the username is taken. */
export async function insertUser(
  sql: Sql,
  user: {
    readonly merchantId: bigint;
    readonly username: string;
    readonly usernameKey: string;
    readonly passwordHash: string;
    readonly scopes: readonly Scope[];
    readonly createdAt: Date;
  },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'user_insert',
    text: `insert into users (merchant_id, username, username_key, password_hash, scopes, created_at)
           values ($1, $2, $3, $4, $5, $6) on conflict (username_key) do nothing`,
    values: [user.merchantId, user.username, user.usernameKey, user.passwordHash, user.scopes, user.createdAt],
  });
  return rowCount === 1;
}

/** Changes what is not null. */
export async function updateUser(
  sql: Sql,
  userId: bigint,
  change: { readonly passwordHash: string | null; readonly scopes: readonly Scope[] | null },
): Promise<void> {
  await sql.query({
    name: 'user_update',
    text: 'update users set password_hash = coalesce($2, password_hash), scopes = coalesce($3, scopes) where id = $1',
    values: [userId, change.passwordHash, change.scopes],
  });
}

/** Replaces a hash by one of the same password with other parameters; false when the password was changed meanwhile. */
export async function replaceHash(sql: Sql, userId: bigint, from: string, to: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'user_rehash',
    text: 'update users set password_hash = $3 where id = $1 and password_hash = $2',
    values: [userId, from, to],
  });
  return rowCount === 1;
}
