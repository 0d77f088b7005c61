// The rows of users.
import type { Scope } from '../../core/credentials.ts';
import type { SealedUser, StoredSeal } from '../../core/row-seals.ts';
import type { Sql } from '../postgres/connect.ts';
import { newestOf } from './seals.ts';

export type User = SealedUser &
  StoredSeal & {
    readonly id: bigint;
    readonly affiliateId: string;
    readonly suspended: boolean;
  };

/** SQL: what is sealed of `users u`, and its seal. */
export const SEALED_USER = `u.username_key, u.merchant_id, u.password_hash, u.scopes, u.seal as user_seal, u.seal_version,
                  ${newestOf(`'user ' || u.username_key`)} as newest_version`;

export type SealedUserColumns = {
  username_key: string;
  merchant_id: bigint;
  password_hash: string;
  scopes: Scope[];
  user_seal: Buffer | null;
  seal_version: bigint;
  newest_version: bigint;
};

/** What a seal covers of a user, and the seal, from columns that a query has selected. */
export function sealedUserFrom(row: SealedUserColumns): SealedUser & StoredSeal {
  return {
    usernameKey: row.username_key,
    merchantId: row.merchant_id,
    passwordHash: row.password_hash,
    scopes: row.scopes,
    seal: row.user_seal,
    version: row.seal_version,
    isNewest: row.seal_version === row.newest_version,
  };
}

type Row = SealedUserColumns & { id: bigint; affiliate_id: string; suspended: boolean };
const COLUMNS = `u.id, m.affiliate_id, m.suspended_at is not null as suspended, ${SEALED_USER}`;
const fromRow = (row: Row): User => ({
  ...sealedUserFrom(row),
  id: row.id,
  affiliateId: row.affiliate_id,
  suspended: row.suspended,
});

/** The user of a username's key (NFKC, case-folded), or null. */
export async function findUser(sql: Sql, usernameKey: string): Promise<User | null> {
  const { rows } = await sql.query<Row>({
    name: 'user_find',
    text: `select ${COLUMNS} from users u join merchants m on m.id = u.merchant_id where u.username_key = $1`,
    values: [usernameKey],
  });
  return rows[0] === undefined ? null : fromRow(rows[0]);
}

/** The same, locked until the transaction ends. */
export async function lockUser(sql: Sql, usernameKey: string): Promise<User | null> {
  const { rows } = await sql.query<Row>({
    name: 'user_lock',
    text: `select ${COLUMNS} from users u join merchants m on m.id = u.merchant_id where u.username_key = $1 for update of u`,
    values: [usernameKey],
  });
  return rows[0] === undefined ? null : fromRow(rows[0]);
}

/** Locks the rows of users until the transaction ends, always in one order: two who change each other do not wait for each other. */
export async function lockUsers(sql: Sql, ids: readonly bigint[]): Promise<void> {
  await sql.query({
    name: 'users_lock',
    text: 'select 1 from users where id = any($1::bigint[]) order by id for update',
    values: [ids],
  });
}

/** Users after one of them, in the order of their keys. */
export async function listUsers(sql: Sql, after: string, limit: number): Promise<readonly User[]> {
  const { rows } = await sql.query<Row>({
    name: 'user_list',
    text: `select ${COLUMNS} from users u join merchants m on m.id = u.merchant_id where u.username_key > $1 order by u.username_key limit $2`,
    values: [after, limit],
  });
  return rows.map(fromRow);
}

export type ListedUser = {
  readonly id: bigint;
  readonly username: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
};

/** The users of a merchant, the oldest first. */
export async function listUsersOf(sql: Sql, merchantId: bigint, limit: number): Promise<readonly ListedUser[]> {
  const { rows } = await sql.query<{ id: bigint; username: string; scopes: Scope[]; created_at: Date }>({
    name: 'user_list_of',
    text: 'select id, username, scopes, created_at from users where merchant_id = $1 order by id limit $2',
    values: [merchantId, limit],
  });
  return rows.map(({ created_at: createdAt, ...row }) => ({ ...row, createdAt }));
}

/** How many users a merchant has. */
export async function countUsersOf(sql: Sql, merchantId: bigint): Promise<number> {
  const { rows } = await sql.query<{ count: bigint }>({
    name: 'user_count_of',
    text: 'select count(*) as count from users where merchant_id = $1',
    values: [merchantId],
  });
  return Number(rows[0]?.count ?? 0n);
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

/** Inserts a user; false when the username is taken. Its version is taken by the caller. */
export async function insertUser(
  sql: Sql,
  user: SealedUser & {
    readonly username: string;
    readonly createdAt: Date;
    readonly version: bigint;
    readonly seal: Uint8Array;
  },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'user_insert',
    text: `insert into users (merchant_id, username, username_key, password_hash, scopes, created_at, seal_version, seal)
           values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (username_key) do nothing`,
    values: [
      user.merchantId,
      user.username,
      user.usernameKey,
      user.passwordHash,
      user.scopes,
      user.createdAt,
      user.version,
      user.seal,
    ],
  });
  return rowCount === 1;
}

/** Writes what a locked user signs in by, and its seal. */
export async function writeUser(
  sql: Sql,
  user: SealedUser & { readonly version: bigint; readonly seal: Uint8Array },
): Promise<void> {
  await sql.query({
    name: 'user_write',
    text: 'update users set password_hash = $2, scopes = $3, seal_version = $4, seal = $5 where username_key = $1',
    values: [user.usernameKey, user.passwordHash, user.scopes, user.version, user.seal],
  });
}
