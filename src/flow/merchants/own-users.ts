// The users of a merchant, as one of them makes and changes the others in the portal: what the operator's commands do, within one merchant.
import { SCOPES, type Scope, usernameKey } from '../../core/credentials.ts';
import { Refusal } from '../../core/refusal.ts';
import { isSignInOpen } from '../../store/merchants/sign-ins.ts';
import { countUsersOf, findUser, type ListedUser, listUsersOf, lockUsers } from '../../store/merchants/users.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Caller } from '../sign-in/sign-in.ts';
import type { SignInContext } from '../sign-in/token-pair.ts';
import { addUser, setUser } from './merchants.ts';

/** How many users a merchant may make; the operator makes more. */
export const MOST_USERS = 100;
const MOST_LISTED = 10 * MOST_USERS;

type By = Pick<Caller, 'merchantId' | 'affiliateId' | 'userId' | 'signInId' | 'scopes'>;

/** Names that no page can have the address of: browsers take them for the way up. */
const NO_PATHS: ReadonlySet<string> = new Set(['.', '..']);

/** Whether a user may make and change others: who has every scope gives none that is not his. */
export const mayChangeUsers = ({ scopes }: Pick<By, 'scopes'>): boolean => SCOPES.every((scope) => scopes.has(scope));

/** The users of a merchant, the oldest first. */
export function ownUsers(ctx: SignInContext, { merchantId }: Pick<By, 'merchantId'>): Promise<readonly ListedUser[]> {
  return listUsersOf(ctx.db, merchantId, MOST_LISTED);
}

/**
 * Makes a user.
 * @returns its password, which nobody is shown again
 * @throws Refusal insufficient_permissions, invalid_token: his own sign-in was ended meanwhile, invalid_request (also: the username is taken, or
 *   there are {@link MOST_USERS})
 */
export async function addOwnUser(
  ctx: SignInContext,
  by: By,
  user: { readonly username: string; readonly scopes: readonly string[] },
): Promise<{ readonly password: string }> {
  checkMay(by);
  if (NO_PATHS.has(user.username)) {
    const message = `${user.username} cannot be a username here: no page can have the address of it.`;
    throw new Refusal('invalid_request', { message, param: 'username' });
  }
  const password = newPassword(ctx);
  const isSignedIn = whileSignedIn(by, []);
  await addUser(ctx, { ...user, affiliateId: by.affiliateId, password }, async (sql) => {
    await isSignedIn(sql);
    // his row is locked: those that he makes at once are counted one after the other
    if ((await countUsersOf(sql, by.merchantId)) < MOST_USERS) return;
    const message = `There are ${MOST_USERS} users already; the operator makes more.`;
    throw new Refusal('invalid_request', { message, param: 'username' });
  });
  return { password };
}

/**
 * Gives a user other scopes, which ends all of his sign-ins.
 * @throws Refusal insufficient_permissions, not_found, invalid_token: his own sign-in was ended meanwhile, invalid_request: of oneself
 */
export async function setOwnScopes(
  ctx: SignInContext,
  by: By,
  user: { readonly username: string; readonly scopes: readonly string[] },
): Promise<void> {
  checkMay(by);
  const { id } = await ownUser(ctx, by, user.username);
  if (id === by.userId)
    throw new Refusal('invalid_request', { message: 'Another user must change your own scopes.', param: 'scopes' });
  await setUser(ctx, user, whileSignedIn(by, [id]));
}

/**
 * Gives another user a new password, which ends all of his sign-ins.
 * @returns the password, which nobody is shown again
 * @throws Refusal insufficient_permissions, not_found, invalid_token: his own sign-in was ended meanwhile, invalid_request: of oneself
 */
export async function renewPassword(ctx: SignInContext, by: By, username: string): Promise<{ readonly password: string }> {
  const { id } = await ownUser(ctx, by, username);
  if (id === by.userId) throw new Refusal('invalid_request', { message: 'You choose your own password.', param: 'username' });
  checkMay(by);
  const password = newPassword(ctx);
  await setUser(ctx, { username, password }, whileSignedIn(by, [id]));
  return { password };
}

/**
 * Gives a user the password that he has chosen, which ends all of his sign-ins. One that was made here would be lost with the answer that shows it, and
 * he could not sign in to make another.
 * @throws Refusal not_found, invalid_token: his sign-in was ended meanwhile, invalid_request: of another user, or no good password
 */
export async function choosePassword(
  ctx: SignInContext,
  by: By,
  chosen: { readonly username: string; readonly password: string },
): Promise<void> {
  const { id } = await ownUser(ctx, by, chosen.username);
  if (id !== by.userId)
    throw new Refusal('invalid_request', { message: 'Only your own password can be chosen.', param: 'new_password' });
  await setUser(ctx, chosen, whileSignedIn(by, []));
}

/** @throws Refusal not_found, for another merchant's user too */
async function ownUser(ctx: SignInContext, { merchantId }: By, username: string) {
  const key = usernameKey(username);
  const user = key === null ? null : await findUser(ctx.db, key);
  if (user === null || user.merchantId !== merchantId)
    throw new Refusal('not_found', { message: 'There is no user with this username.', param: 'username' });
  return user;
}

/**
 * Lets a change through while the sign-in of who makes it is open. Hashing takes its time, in which another may have given him a new password or other
 * scopes; both end his sign-ins, under the lock of his row.
 */
function whileSignedIn({ userId, signInId }: By, changed: readonly bigint[]): (sql: Sql) => Promise<void> {
  return async (sql) => {
    await lockUsers(sql, [userId, ...changed]);
    if (!(await isSignInOpen(sql, signInId))) throw new Refusal('invalid_token');
  };
}

function checkMay(by: By): void {
  if (mayChangeUsers(by)) return;
  const all: readonly Scope[] = SCOPES;
  throw new Refusal('insufficient_permissions', { message: `This needs the scopes ${all.join(', ')}.` });
}

/** 144 random bits. */
const newPassword = ({ ports: { rng } }: SignInContext): string => Buffer.from(rng.bytes(18)).toString('base64url');
