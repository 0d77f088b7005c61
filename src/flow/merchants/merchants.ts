// Merchants and their users, as the operator makes and changes them.
import { isScope, passwordProblem, SCOPES, type Scope, usernameKey } from '../../core/credentials.ts';
import { sortableId } from '../../core/ids.ts';
import { Refusal } from '../../core/refusal.ts';
import { isSealedUser } from '../../core/row-seals.ts';
import { findMerchantId, insertMerchant, setSuspended } from '../../store/merchants/merchants.ts';
import { DEFAULT_SETTINGS } from '../../store/merchants/settings.ts';
import { revokeSignInsOf } from '../../store/merchants/sign-ins.ts';
import { findUser, lockUser } from '../../store/merchants/users.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { changeUser, foreignUser, insertSealedUser } from '../sign-in/sealed-users.ts';
import { forgetMerchant, forgetSignIn } from '../sign-in/sign-in.ts';
import type { SignInContext } from '../sign-in/token-pair.ts';
import { sealSettings } from './settings.ts';

/** This username is taken. */
export class UsernameTaken extends Refusal {
  constructor(username: string) {
    super('invalid_request', { message: `username ${username} is taken.`, param: 'username' });
  }
}

export type NewMerchant = {
  readonly username: string;
  /** 12 to 128 characters (in the sandbox 1 to 128), at most 512 bytes. */
  readonly password: string;
  readonly email: string;
  readonly businessName: string;
};

/**
 * Makes a merchant with its settings and a first user who has all scopes. Refused: `invalid_request` with the field in `param`; {@link
 * UsernameTaken}.
 */
export async function addMerchant(ctx: SignInContext, merchant: NewMerchant): Promise<{ readonly affiliateId: string }> {
  const key = checkedUsername(merchant.username);
  checkPassword(ctx, merchant.password);
  const email = checkedEmail(merchant.email);
  const businessName = checkedBusinessName(merchant.businessName);
  const passwordHash = await ctx.ports.passwords.hash(merchant.password);
  const now = ctx.ports.clock.now();
  const affiliateId = sortableId('aff_', now, ctx.ports.rng.bytes(10));
  const createdAt = new Date(now);
  await ctx.db.transaction(async (sql) => {
    const merchantId = await insertMerchant(sql, { affiliateId, email, businessName, createdAt });
    await sealSettings(ctx.ports, sql, merchantId, DEFAULT_SETTINGS);
    const user = { merchantId, username: merchant.username, usernameKey: key, passwordHash, scopes: SCOPES, createdAt };
    if (!(await insertSealedUser(ctx, sql, user))) throw new UsernameTaken(merchant.username);
  });
  return { affiliateId };
}

/** Asked first in the database transaction that changes something, since a password is hashed before it; throws a Refusal of what it does not allow. */
type Allowed = (sql: Sql) => Promise<void>;
/** Whoever runs commands may. */
const ALWAYS: Allowed = async () => {};

/** Makes a further user of a merchant. Refused: `not_found` for an unknown merchant, what `allowed` refuses, else as {@link addMerchant}. */
export async function addUser(
  ctx: SignInContext,
  user: {
    readonly affiliateId: string;
    readonly username: string;
    readonly password: string;
    readonly scopes: readonly string[];
  },
  allowed: Allowed = ALWAYS,
): Promise<void> {
  const key = checkedUsername(user.username);
  checkPassword(ctx, user.password);
  const scopes = checkedScopes(user.scopes);
  const merchantId = await findMerchantId(ctx.db, storable(user.affiliateId));
  if (merchantId === null) throw unknownMerchant();
  const passwordHash = await ctx.ports.passwords.hash(user.password);
  const createdAt = new Date(ctx.ports.clock.now());
  const made = { merchantId, username: user.username, usernameKey: key, passwordHash, scopes, createdAt };
  const inserted = await ctx.db.transaction(async (sql) => {
    await allowed(sql);
    return insertSealedUser(ctx, sql, made);
  });
  if (!inserted) throw new UsernameTaken(user.username);
}

/** Changes a user's password or scopes and revokes all of the user's sign-ins. Refused: `not_found`, what `allowed` refuses, else as {@link addMerchant}. */
export async function setUser(
  ctx: SignInContext,
  change: { readonly username: string; readonly password?: string | undefined; readonly scopes?: readonly string[] | undefined },
  allowed: Allowed = ALWAYS,
): Promise<void> {
  if (change.password === undefined && change.scopes === undefined) {
    throw new Refusal('invalid_request', { message: 'Name a new password, new scopes, or both.', param: 'password' });
  }
  if (change.password !== undefined) checkPassword(ctx, change.password);
  const scopes = change.scopes === undefined ? null : checkedScopes(change.scopes);
  const key = usernameKey(change.username);
  const unknown = new Refusal('not_found', { message: 'There is no user with this username.', param: 'username' });
  if (key === null || (await findUser(ctx.db, key)) === null) throw unknown;
  const passwordHash = change.password === undefined ? null : await ctx.ports.passwords.hash(change.password);
  const revoked = await ctx.db.transaction(async (sql) => {
    await allowed(sql);
    // the row first: a sign-in in progress holds it, and the revocation then sees that sign-in
    const user = await lockUser(sql, key);
    if (user === null) throw unknown;
    if (!isSealedUser(ctx.ports.seals, user, user))
      throw new Refusal('not_resolvable', { message: foreignUser(user.usernameKey), param: 'username' });
    await changeUser(ctx, sql, { ...user, passwordHash: passwordHash ?? user.passwordHash, scopes: scopes ?? user.scopes });
    return revokeSignInsOf(sql, user.id, 'credentials_changed', new Date(ctx.ports.clock.now()));
  });
  for (const signInId of revoked) forgetSignIn(signInId);
}

/** Refuses all of a merchant's calls from now on. Refused: `not_found`. */
export async function suspendMerchant(ctx: SignInContext, of: { readonly affiliateId: string }): Promise<void> {
  await changeSuspension(ctx, of.affiliateId, new Date(ctx.ports.clock.now()));
}

/** Ends a suspension. Refused: `not_found`. */
export async function resumeMerchant(ctx: SignInContext, of: { readonly affiliateId: string }): Promise<void> {
  await changeSuspension(ctx, of.affiliateId, null);
}

type DemoMerchant = { readonly affiliateId: string; readonly made: boolean; readonly hasPassword: boolean };

/**
 * Ensures that the sandbox's merchant `demo` exists; a new one gets this password. Several processes may call it at once.
 * @param ofAnother what to do when it has another password: set it to this one (which ends the sign-ins), or keep it
 * @returns `hasPassword`: whether it has this password now
 */
export async function ensureDemoMerchant(
  ctx: SignInContext,
  password: string,
  ofAnother: 'set' | 'keep' = 'set',
): Promise<DemoMerchant> {
  const username = 'demo';
  const existing = await findUser(ctx.db, username);
  if (existing === null) {
    try {
      const { affiliateId } = await addMerchant(ctx, {
        username,
        password,
        email: 'demo@example.com',
        businessName: 'Demo Shop',
      });
      return { affiliateId, made: true, hasPassword: true };
    } catch (error) {
      const other = error instanceof Refusal && error.param === 'username' ? await findUser(ctx.db, username) : null;
      if (other === null) throw error;
      return { affiliateId: other.affiliateId, made: false, hasPassword: true };
    }
  }
  const isSame = await ctx.ports.passwords.verify(existing.passwordHash, password);
  if (!isSame && ofAnother === 'set') await setUser(ctx, { username, password });
  return { affiliateId: existing.affiliateId, made: false, hasPassword: isSame || ofAnother === 'set' };
}

async function changeSuspension(ctx: SignInContext, affiliateId: string, at: Date | null): Promise<void> {
  const merchantId = await setSuspended(ctx.db, storable(affiliateId), at);
  if (merchantId === null) throw unknownMerchant();
  forgetMerchant(merchantId);
}

const unknownMerchant = (): Refusal =>
  new Refusal('not_found', { message: 'There is no merchant with this affiliate_id.', param: 'affiliate_id' });
/** PostgreSQL's text cannot hold NUL, so no id contains one. */
const storable = (text: string): string => text.replaceAll('\0', '?');

function checkedUsername(username: string): string {
  const key = usernameKey(username);
  if (key !== null) return key;
  const message =
    'username must have 1 to 128 letters, digits or punctuation marks of ASCII, or letters of one alphabet that cannot be taken for another; no white space.';
  throw new Refusal('invalid_request', { message, param: 'username' });
}

function checkPassword(ctx: SignInContext, password: string): void {
  const message = passwordProblem(password, ctx.network === 'sandbox' ? 1 : undefined);
  if (message !== null) throw new Refusal('invalid_request', { message, param: 'password' });
}

function checkedScopes(scopes: readonly string[]): readonly Scope[] {
  const known = scopes.filter(isScope);
  if (known.length > 0 && known.length === scopes.length) return SCOPES.filter((scope) => known.includes(scope));
  throw new Refusal('invalid_request', { message: `scopes must name one or more of ${SCOPES.join(', ')}.`, param: 'scopes' });
}

function checkedEmail(email: string): string {
  const plain =
    email.length <= 254 &&
    /^[^\s@\p{C}"(),:;<>[\\\]]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)*[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u.test(
      email,
    );
  if (plain) return email;
  throw new Refusal('invalid_request', {
    message: 'email must be one address of at most 254 characters, such as shop@example.com.',
    param: 'email',
  });
}

function checkedBusinessName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== '' && [...trimmed].length <= 200 && trimmed.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(trimmed))
    return trimmed;
  throw new Refusal('invalid_request', {
    message: 'business_name must have 1 to 200 characters and no control or invisible characters.',
    param: 'business_name',
  });
}
