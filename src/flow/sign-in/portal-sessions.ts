// The portal's sessions: a sign-in like those of the API whose tokens never leave this process. A browser holds a token of another kind for it, which no
// operation of the API takes, and which ends 15 minutes after the last page and 12 hours after the sign-in.
import { createHash } from 'node:crypto';
import type { TokenClaims } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { presentAccessToken } from '../../store/merchants/sign-ins.ts';
import { type Caller, callerOf, signOut } from './sign-in.ts';
import { type Admit, hashOf, readToken, type SignInContext, storeSigningKey, type UnknownKeys } from './token-pair.ts';

export type PortalSession = {
  readonly caller: Caller;
  /** The form in which usernames are compared. */
  readonly username: string;
  /** Forms of this session carry it: nobody else can know it. */
  readonly formToken: string;
  /** What the browser holds from now on. */
  readonly token: string;
};

const LONGEST_MS = 12 * 3_600_000;
/** From this age on a token is replaced by a new one. */
const RENEWED_SECONDS = 60;

/** The token of a session for a sign-in that was just made. @param accessToken of that sign-in, made by this process */
export function sessionTokenFor(ctx: SignInContext, accessToken: string): string {
  return ctx.ports.tokens.sign('session', ownClaims(ctx, accessToken));
}

/** Ends a sign-in that was made only to see whether a password is right. @param accessToken of that sign-in, made by this process */
export async function signOutAgain(ctx: SignInContext, accessToken: string): Promise<void> {
  await signOut(ctx, { signInId: ownClaims(ctx, accessToken).sid });
}

function ownClaims({ ports: { tokens } }: SignInContext, accessToken: string): TokenClaims {
  const claims = tokens.verify(accessToken, 'access');
  if ('unknownKid' in claims) throw new Error('the access token is not of this process');
  return claims;
}

/**
 * The session that a browser shows, as the database says it now.
 * @param admit is asked before the database is, for a token by a key that this process has not seen
 * @throws Refusal invalid_token (also of a revoked sign-in), token_expired, and what `admit` refuses
 */
export async function readPortalSession(
  ctx: SignInContext,
  token: string,
  { admit, unknown }: { readonly admit: Admit; readonly unknown: UnknownKeys },
): Promise<PortalSession> {
  const claims = await readToken(ctx, token, 'session', { admit, unknown });
  const state = await presentAccessToken(ctx.db, { signInId: claims.sid, accessHash: hashOf(claims.jti) });
  const caller = callerOf(ctx, claims, state);
  const nowMs = ctx.ports.clock.now();
  if (state === null || nowMs - state.createdAtMs >= LONGEST_MS) throw new Refusal('token_expired');
  const age = Math.floor(nowMs / 1000) - claims.iat;
  const kept = age < RENEWED_SECONDS ? token : await renewed(ctx, claims, nowMs);
  return { caller, username: state.user.usernameKey, formToken: formTokenOf(claims), token: kept };
}

async function renewed(ctx: SignInContext, claims: TokenClaims, nowMs: number): Promise<string> {
  await storeSigningKey(ctx, ctx.db, nowMs);
  return ctx.ports.tokens.sign('session', { ...claims, iat: Math.floor(nowMs / 1000) });
}

/** The database has another hash of the same identifier, from which this one cannot be told. */
const formTokenOf = ({ jti }: TokenClaims): string => createHash('sha256').update(`portal form ${jti}`).digest('base64url');
