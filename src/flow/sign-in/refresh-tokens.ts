// Refresh tokens are used once and rotate (behaviour §2). A consumed one that comes back means a lost answer or a thief: `judgeRefresh`
// decides which; test/flow/sign-in/rotation.test.ts compares it with a model of owner, second program and thief.
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { TokenClaims } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { signInFields } from '../../core/row-seals.ts';
import {
  handOutAgain,
  lockRotation,
  notePresented,
  type Rotation,
  revokeSignIn,
  rotateSignIn,
} from '../../store/merchants/sign-ins.ts';
import { foreignSignIn } from './sealed-users.ts';
import { forgetSignIn } from './sign-in.ts';
import { hashOf, makePair, readToken, type SignInContext, type TokenPair } from './token-pair.ts';

/** A consumed token is answered again this long after its first use, while its successor is not consumed … */
export const GRACE_MS = 30_000;
/** … and this long while nobody has presented either token of the successor, so its receiver probably never got it. */
export const UNUSED_GRACE_MS = 900_000;
/** In at most this many rotations in a row: a client that needs it in a third may be a thief alongside the real one. */
const MAX_GRACES_IN_A_ROW = 2;

type Judgement = { readonly verdict: 'rotate' | 'again' | 'reused'; readonly gracesInARow: number };

/**
 * What a refresh with this token does to the sign-in.
 * @param presented whether a token of the newest pair has been presented, now included
 */
export function judgeRefresh(
  rotation: Pick<Rotation, 'refreshHash' | 'previous' | 'handedOutAgain' | 'gracesInARow'>,
  use: { readonly refreshHash: Buffer; readonly presented: boolean; readonly nowMs: number },
): Judgement {
  const { previous, handedOutAgain } = rotation;
  if (use.refreshHash.equals(rotation.refreshHash))
    return { verdict: 'rotate', gracesInARow: handedOutAgain ? rotation.gracesInARow : 0 };
  const reused: Judgement = { verdict: 'reused', gracesInARow: rotation.gracesInARow };
  if (previous === null || !use.refreshHash.equals(previous.refreshHash)) return reused;
  const sinceMs = use.nowMs - previous.consumedAt.getTime();
  const inTime = sinceMs <= GRACE_MS || (sinceMs <= UNUSED_GRACE_MS && !use.presented);
  if (!inTime || (!handedOutAgain && rotation.gracesInARow >= MAX_GRACES_IN_A_ROW)) return reused;
  return { verdict: 'again', gracesInARow: handedOutAgain ? rotation.gracesInARow : rotation.gracesInARow + 1 };
}

/**
 * Exchanges a pair for the next. The access token may have expired but must be of the same sign-in.
 * Refused: `invalid_token` (also for a revoked sign-in, and for tokens that do not belong together), `refresh_token_expired`,
 * `refresh_token_reused` (the sign-in is revoked then), `account_suspended` (nothing is consumed).
 */
export async function refresh(
  ctx: SignInContext,
  sent: { readonly accessToken: string; readonly refreshToken: string },
): Promise<TokenPair> {
  const { claims, accessHash } = await readBoth(ctx, sent);
  const refreshHash = hashOf(claims.jti);
  const signInId = claims.sid;
  const outcome = await ctx.db.transaction(async (sql): Promise<TokenPair | Refusal> => {
    const rotation = await lockRotation(sql, signInId);
    if (rotation === null || rotation.affiliateId !== claims.sub) return new Refusal('invalid_token');
    if (!ctx.ports.seals.fits(signInFields(signInId, rotation.usernameKey), rotation.seal)) {
      ctx.ports.seals.report(foreignSignIn(signInId));
      return new Refusal('invalid_token');
    }
    const nowMs = ctx.ports.clock.now();
    const presented = rotation.presented || accessHash?.equals(rotation.accessHash) === true;
    const { verdict, gracesInARow } = judgeRefresh(rotation, { refreshHash, presented, nowMs });
    if (verdict === 'reused') {
      await revokeSignIn(sql, signInId, 'refresh_token_reused', new Date(nowMs));
      return new Refusal('refresh_token_reused');
    }
    // whoever sends a consumed token that no grace covers is a thief or was robbed, whichever access token comes with it
    if (accessHash === null) return new Refusal('invalid_token');
    if (rotation.suspended) return new Refusal('account_suspended');
    if (verdict === 'again') {
      await handOutAgain(sql, signInId, { gracesInARow, presented });
      return unseal((rotation.previous as NonNullable<Rotation['previous']>).sealedPair, sent.refreshToken);
    }
    const { pair, hashes } = await makePair(ctx, sql, { id: signInId, affiliateId: claims.sub });
    const sealedPair = seal(pair, sent.refreshToken, ctx.ports.rng.bytes(NONCE));
    await rotateSignIn(sql, signInId, { ...hashes, gracesInARow, consumedAt: new Date(nowMs), sealedPair });
    return pair;
  });
  if (!(outcome instanceof Refusal)) return outcome;
  if (outcome.code === 'refresh_token_reused') forgetSignIn(signInId);
  throw outcome;
}

/**
 * The refresh token, and the access token's hash if it is of the same sign-in, else null: then the call is refused. A valid token is
 * recorded as presented even when the other one is invalid.
 */
async function readBoth(
  ctx: SignInContext,
  sent: { readonly accessToken: string; readonly refreshToken: string },
): Promise<{ readonly claims: TokenClaims; readonly accessHash: Buffer | null }> {
  const [access, claims] = await Promise.allSettled([
    readToken(ctx, sent.accessToken, 'access', { ignoreExpiry: true }),
    readToken(ctx, sent.refreshToken, 'refresh'),
  ]);
  if (access.status === 'fulfilled' && claims.status === 'fulfilled') {
    const { sid, sub } = claims.value;
    if (access.value.sid === sid && access.value.sub === sub)
      return { claims: claims.value, accessHash: hashOf(access.value.jti) };
  }
  for (const one of [access, claims]) {
    if (one.status === 'fulfilled') await notePresented(ctx.db, one.value.sid, hashOf(one.value.jti));
    else if (!(one.reason instanceof Refusal)) throw one.reason;
  }
  if (claims.status === 'rejected') throw access.status === 'rejected' ? access.reason : claims.reason;
  return { claims: claims.value, accessHash: null };
}

// For the grace period the pair is stored sealed under the consumed refresh token itself: nobody can open it with the database alone, but
// any process that is sent the token again can, even after the process that signed the pair is gone.
const NONCE = 12;
const TAG = 16;
const keyOf = (refreshToken: string): Buffer => Buffer.from(hkdfSync('sha256', refreshToken, '', 'bursar refresh grace', 32));

function seal(pair: TokenPair, refreshToken: string, nonce: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', keyOf(refreshToken), nonce);
  const text = JSON.stringify([pair.accessToken, pair.refreshToken]);
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

function unseal(sealed: Buffer, refreshToken: string): TokenPair {
  const decipher = createDecipheriv('aes-256-gcm', keyOf(refreshToken), sealed.subarray(0, NONCE), { authTagLength: TAG });
  decipher.setAuthTag(sealed.subarray(-TAG));
  const text = decipher.update(sealed.subarray(NONCE, -TAG), undefined, 'utf8') + decipher.final('utf8');
  const [accessToken, refreshToken2] = JSON.parse(text) as [string, string];
  return { accessToken, refreshToken: refreshToken2 };
}
