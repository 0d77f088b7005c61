// Users are written with a seal that the database cannot make, under the next number of their changes.
import { type SealedUser, userFields, userSubject } from '../../core/row-seals.ts';
import { nextVersion, takeVersion } from '../../store/merchants/seals.ts';
import { insertUser, type User, writeUser } from '../../store/merchants/users.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { SignInContext } from './token-pair.ts';

type Seals = { readonly ports: Pick<SignInContext['ports'], 'seals'> };

/** What the operator is told of a user whose row does not fit its seal. */
export const foreignUser = (usernameKey: string): string =>
  `user ${usernameKey} is not what was sealed: somebody has changed it in the database, and it cannot sign in (bursar merchant seal)`;
/** What the operator is told of a sign-in whose row does not fit its seal. */
export const foreignSignIn = (id: string): string =>
  `sign-in ${id} is not what was sealed: somebody has changed it in the database`;

async function sealed(
  { ports: { seals } }: Seals,
  sql: Sql,
  user: SealedUser,
): Promise<{ readonly version: bigint; readonly seal: Uint8Array }> {
  const version = await nextVersion(sql, userSubject(user.usernameKey));
  return { version, seal: seals.seal(userFields(user, version)) };
}

/** Inserts a user with its seal; false when the username is taken. */
export async function insertSealedUser(
  ctx: Seals,
  sql: Sql,
  user: SealedUser & { readonly username: string; readonly createdAt: Date },
): Promise<boolean> {
  const { version, seal } = await sealed(ctx, sql, user);
  if (!(await insertUser(sql, { ...user, version, seal }))) return false;
  await takeVersion(sql, userSubject(user.usernameKey), version);
  return true;
}

/** Writes a user whose row is locked, with a new seal; returns it. */
export async function changeUser(ctx: Seals, sql: Sql, user: User): Promise<User> {
  const { version, seal } = await sealed(ctx, sql, user);
  await takeVersion(sql, userSubject(user.usernameKey), version);
  await writeUser(sql, { ...user, version, seal });
  return { ...user, version, seal, isNewest: true };
}
