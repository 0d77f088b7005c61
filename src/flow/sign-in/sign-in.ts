// Signing in and out, and whose an access token is. A process makes one authenticator and uses it for every request, so that a token it has
// seen costs one map look-up; revocations reach it by database notification.
import type { Scope } from '../../core/credentials.ts';
import { usernameKey } from '../../core/credentials.ts';
import { sortableId } from '../../core/ids.ts';
import type { TokenClaims } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { isSealedUser, signInFields } from '../../core/row-seals.ts';
import { insertSignIn, presentAccessToken, revokeSignIn, type SignInState } from '../../store/merchants/sign-ins.ts';
import { findUser, holdCredentials, lockUser, type User } from '../../store/merchants/users.ts';
import { changeUser, foreignSignIn, foreignUser } from './sealed-users.ts';
import { type Admit, hashOf, makePair, readToken, type SignInContext, type TokenPair, type UnknownKeys } from './token-pair.ts';

export type Caller = {
  readonly merchantId: bigint;
  readonly userId: bigint;
  readonly affiliateId: string;
  readonly signInId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly suspended: boolean;
  /** The end of the token, on the service's clock. */
  readonly expiresAtMs: number;
};

export type Authenticator = {
  /**
   * The caller who presents this access token. Answers at once when the token was seen in the last 5 s, else by a promise. Refused (thrown
   * or rejected): `invalid_token` (also for a revoked sign-in), `token_expired`, and what `admit` refuses.
   * @param admit is asked before the database is, for a token by a key that this process has not seen
   */
  authenticate(token: string, admit?: Admit): Caller | Promise<Caller>;
  /**
   * The same, but by a reading of the database that began after the call: for operations that move money out. Calls with one token share
   * it, so that there is one at a time however many come.
   */
  authenticateNow(token: string, admit?: Admit): Promise<Caller>;
  /** Calls this whenever something about sign-ins has changed, with whether it may concern a caller; returns what ends that. */
  watch(onChange: (concerns: (caller: Caller) => boolean) => void): () => void;
  /** Subscribes to revocations and suspensions; until then it notices them within 5 s. */
  listen(): Promise<void>;
  close(): Promise<void>;
};

const FRESH_MS = 5_000;
/** From this age on the next call triggers a new look-up in the background, so that busy callers never wait. */
const LOOK_AGAIN_MS = 2_500;
const MAX_SEEN = 10_000;

type Seen = {
  readonly claims: TokenClaims;
  caller: Caller;
  /** When the database answered so; -Infinity: ask again. */
  saidAtMs: number;
};
type Looking = { readonly epoch: number; readonly answer: Promise<Caller> };

/** The authenticators of this process: a revocation made here is forgotten here before its answer is sent. */
const forgetters = new Set<(changed: string) => void>();

/** Makes every authenticator of this process look up a sign-in again. Other processes get a notification from the database at commit. */
export function forgetSignIn(signInId: string): void {
  for (const forget of forgetters) forget(`s:${signInId}`);
}

/** The same for all sign-ins of a merchant. */
export function forgetMerchant(merchantId: bigint): void {
  for (const forget of forgetters) forget(`m:${merchantId}`);
}

/** Makes the authenticator of a process; `listen` it before it serves. */
export function createAuthenticator(ctx: SignInContext): Authenticator {
  const { clock } = ctx.ports;
  const seenTokens = new Map<string, Seen>();
  const looking = new Map<string, Looking>();
  const unknown: UnknownKeys = new Map();
  // by token: the reading under way for authenticateNow, and the one that begins after it
  const running = new Map<string, Promise<Caller>>();
  const next = new Map<string, Promise<Caller>>();
  // counts the revocations: an answer that was under way during one is returned, but not kept
  let epoch = 0;
  let stopListening: (() => Promise<void>) | null = null;

  const watchers = new Set<(concerns: (caller: Caller) => boolean) => void>();

  function forget(changed: string): void {
    epoch += 1;
    const id = changed.slice(2);
    function concerns({ signInId, merchantId }: Caller): boolean {
      if (changed.startsWith('s:')) return signInId === id;
      return !changed.startsWith('m:') || String(merchantId) === id;
    }
    for (const seen of seenTokens.values()) if (concerns(seen.caller)) seen.saidAtMs = Number.NEGATIVE_INFINITY;
    for (const onChange of watchers) onChange(concerns);
  }
  forgetters.add(forget);

  async function ask(token: string, known: Seen | undefined, admit: Admit | undefined): Promise<Caller> {
    const startEpoch = epoch;
    const startMs = clock.now();
    const claims = known?.claims ?? (await readToken(ctx, token, 'access', { admit, unknown }));
    const state = await presentAccessToken(ctx.db, { signInId: claims.sid, accessHash: hashOf(claims.jti) });
    seenTokens.delete(token);
    const caller = callerOf(ctx, claims, state);
    const saidAtMs = epoch === startEpoch ? startMs : Number.NEGATIVE_INFINITY;
    seenTokens.set(token, { claims, caller, saidAtMs });
    if (seenTokens.size > MAX_SEEN) seenTokens.delete(seenTokens.keys().next().value as string);
    return caller;
  }

  /** One look-up at a time for each token; an older one that a revocation may have overtaken is not shared. */
  function look(token: string, known: Seen | undefined, admit?: Admit): Promise<Caller> {
    const shared = looking.get(token);
    if (shared !== undefined && shared.epoch === epoch) return shared.answer;
    const entry: Looking = {
      epoch,
      answer: ask(token, known, admit).finally(() => {
        if (looking.get(token) === entry) looking.delete(token);
      }),
    };
    looking.set(token, entry);
    return entry.answer;
  }

  function askNow(token: string, admit: Admit | undefined): Promise<Caller> {
    const answer = ask(token, seenTokens.get(token), admit).finally(() => {
      if (running.get(token) === answer) running.delete(token);
    });
    running.set(token, answer);
    return answer;
  }
  /** Begins when the reading under way has ended, for everybody who comes until then. */
  function askNext(token: string, earlier: Promise<Caller>, admit: Admit | undefined): Promise<Caller> {
    const begin = (): Promise<Caller> => {
      next.delete(token);
      return askNow(token, admit);
    };
    const answer = earlier.then(begin, begin);
    next.set(token, answer);
    return answer;
  }

  function authenticate(token: string, admit?: Admit): Caller | Promise<Caller> {
    const seen = seenTokens.get(token);
    if (seen === undefined) return look(token, undefined, admit);
    const now = clock.now();
    if (now >= seen.caller.expiresAtMs) {
      seenTokens.delete(token);
      throw new Refusal('token_expired');
    }
    const age = now - seen.saidAtMs;
    // a clock that was set back makes the age unknown
    if (age < 0 || age >= FRESH_MS) return look(token, seen);
    if (age >= LOOK_AGAIN_MS) look(token, seen).catch(() => undefined); // the next caller gets the error
    return seen.caller;
  }

  return {
    authenticate,
    watch(onChange) {
      watchers.add(onChange);
      return () => void watchers.delete(onChange);
    },
    async authenticateNow(token, admit) {
      const seen = seenTokens.get(token);
      if (seen !== undefined && clock.now() >= seen.caller.expiresAtMs) throw new Refusal('token_expired');
      const earlier = running.get(token);
      return next.get(token) ?? (earlier === undefined ? askNow(token, admit) : askNext(token, earlier, admit));
    },
    async listen() {
      stopListening = await ctx.db.listen(
        ['sign_in_changed'],
        (_channel, changed) => forget(changed),
        () => forget('*'),
      );
    },
    async close() {
      forgetters.delete(forget);
      await stopListening?.();
    },
  };
}

/**
 * Signs a user in: a new family of tokens. Refused: `invalid_credentials` (unknown username and wrong password alike, at the same cost),
 * `account_suspended` (only with the right password), `overloaded`.
 */
export async function signIn(
  ctx: SignInContext,
  credentials: { readonly username: string; readonly password: string },
): Promise<TokenPair> {
  const { clock, rng } = ctx.ports;
  const user = await verifiedUser(ctx, credentials);
  if (user === null) throw new Refusal('invalid_credentials');
  if (user.suspended) throw new Refusal('account_suspended');
  const now = clock.now();
  const id = sortableId('sin_', now, rng.bytes(10));
  const pair = await ctx.db.transaction(async (sql) => {
    // the password may have changed since it was compared; from here on a change waits, and revokes the sign-in made here
    if (!(await holdCredentials(sql, user))) return null;
    const made = await makePair(ctx, sql, { id, affiliateId: user.affiliateId });
    const seal = ctx.ports.seals.seal(signInFields(id, user.usernameKey));
    await insertSignIn(sql, { id, userId: user.id, createdAt: new Date(now), ...made.hashes, seal });
    return made.pair;
  });
  if (pair === null) throw new Refusal('invalid_credentials');
  return pair;
}

/**
 * Whose a token is, as the database says it now.
 * @param state null: the sign-in is not there, or revoked
 * @throws Refusal invalid_token
 */
export function callerOf(ctx: SignInContext, claims: TokenClaims, state: SignInState | null): Caller {
  if (state === null || state.affiliateId !== claims.sub || !isSealed(ctx, claims.sid, state)) throw new Refusal('invalid_token');
  const { userId, affiliateId, suspended, user } = state;
  const { merchantId } = user;
  const scopes = new Set(user.scopes);
  return { merchantId, userId, affiliateId, signInId: claims.sid, scopes, suspended, expiresAtMs: claims.exp * 1000 };
}

/** Revokes a sign-in with all its tokens. Signing out twice is allowed. */
export async function signOut(ctx: SignInContext, { signInId }: { readonly signInId: string }): Promise<void> {
  await revokeSignIn(ctx.db, signInId, 'signed_out', new Date(ctx.ports.clock.now()));
  // not before the commit: until then a look-up would still find the sign-in valid, and remember it
  const forget = (): void => forgetSignIn(signInId);
  if (ctx.afterwards === undefined) forget();
  else ctx.afterwards(forget);
}

/** Whether a sign-in and its user are as they were sealed: the database alone can make neither. */
function isSealed({ ports: { seals } }: SignInContext, signInId: string, { seal, user }: SignInState): boolean {
  if (!seals.fits(signInFields(signInId, user.usernameKey), seal)) seals.report(foreignSignIn(signInId));
  else if (!isSealedUser(seals, user, user)) seals.report(foreignUser(user.usernameKey));
  else return true;
  return false;
}

async function verifiedUser(
  ctx: SignInContext,
  { username, password }: { username: string; password: string },
): Promise<User | null> {
  const { passwords, seals } = ctx.ports;
  const key = usernameKey(username);
  const user = key === null ? null : await findUser(ctx.db, key);
  const isOurs = user !== null && isSealedUser(seals, user, user);
  if (user !== null && !isOurs) seals.report(foreignUser(user.usernameKey));
  if (user === null || !isOurs || !password.isWellFormed()) {
    await passwords.verifyNothing(password);
    return null;
  }
  if (!(await passwords.verify(user.passwordHash, password))) return null;
  if (!passwords.isOutdated(user.passwordHash)) return user;
  const passwordHash = await passwords.hash(password);
  return ctx.db.transaction(async (sql) => {
    const now = await lockUser(sql, user.usernameKey);
    // the password, or the scopes, were changed meanwhile
    if (now === null || now.passwordHash !== user.passwordHash || !isSealedUser(seals, now, now)) return user;
    return changeUser(ctx, sql, { ...now, passwordHash });
  });
}
