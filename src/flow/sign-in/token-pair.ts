// Making and reading the tokens of a sign-in, shared by sign-in, refresh and the authenticator. It stores the public halves of the signing
// keys, and loads those of the other processes.
import { createHash } from 'node:crypto';
import type { Network } from '../../core/currency.ts';
import type { Ports, TokenClaims, TokenKind } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { signingKeyFields } from '../../core/row-seals.ts';
import { LIFETIME_SECONDS } from '../../core/sign-in-ports.ts';
import { findSigningKey, type PairHashes, publishSigningKey } from '../../store/merchants/sign-ins.ts';
import type { Database, Sql } from '../../store/postgres/connect.ts';

/** The part of Context that signing in needs. */
export type SignInContext = {
  readonly db: Database;
  readonly ports: Pick<Ports, 'clock' | 'rng' | 'passwords' | 'tokens' | 'seals'>;
  readonly afterwards?: (work: () => void) => void;
  /** In the sandbox any password will do. */
  readonly network?: Network;
};
/** Decides whether something may be looked up for a caller who is not known yet: rejects with the refusal when not. */
export type Admit = () => Promise<void>;
/** The ids of keys that the database did not have, and when it was asked: anybody can invent one. */
export type UnknownKeys = Map<string, number>;

const UNKNOWN_MS = 5_000;
const MOST_UNKNOWN = 1_000;
export type TokenPair = { readonly accessToken: string; readonly refreshToken: string };

/** The hash that is stored of a token's identifier. */
export const hashOf = (jti: string): Buffer => createHash('sha256').update(jti).digest();

/**
 * Makes a new pair for a sign-in. The key's public half is stored by the same transaction, so that whoever gets the pair can use it
 * everywhere.
 */
export async function makePair(
  ctx: SignInContext,
  sql: Sql,
  signIn: { readonly id: string; readonly affiliateId: string },
): Promise<{ readonly pair: TokenPair; readonly hashes: PairHashes }> {
  const { tokens, clock, rng } = ctx.ports;
  const now = clock.now();
  const iat = Math.floor(now / 1000);
  const jti = (): string => Buffer.from(rng.bytes(16)).toString('base64url');
  const [accessJti, refreshJti] = [jti(), jti()];
  await storeSigningKey(ctx, sql, now);
  const common = { sub: signIn.affiliateId, sid: signIn.id, iat };
  return {
    pair: {
      accessToken: tokens.sign('access', { ...common, jti: accessJti }),
      refreshToken: tokens.sign('refresh', { ...common, jti: refreshJti }),
    },
    hashes: {
      accessHash: hashOf(accessJti),
      refreshHash: hashOf(refreshJti),
      expiresAt: new Date((iat + LIFETIME_SECONDS.refresh) * 1000),
    },
  };
}

/** Stores the public half of this process's key: before a token that it signs goes out. Repeating it is harmless. */
export async function storeSigningKey({ ports: { tokens, seals } }: SignInContext, sql: Sql, nowMs: number): Promise<void> {
  const key = tokens.signingKey();
  const seal = seals.seal(signingKeyFields(key.kid, key.publicKeyPem));
  await publishSigningKey(sql, { ...key, seal }, new Date(nowMs));
}

/**
 * Verifies a token, whichever of our processes signed it. Refused: invalid_token, token_expired, refresh_token_expired.
 * @param options.admit is called before the database is asked for a key that this process has not seen; when it rejects, so does this
 * @param options.unknown keys that are not asked for again within 5 s: a key is stored before the first token that it signs is given out
 */
export async function readToken(
  ctx: SignInContext,
  token: string,
  kind: TokenKind,
  options: { readonly ignoreExpiry?: boolean; readonly admit?: Admit | undefined; readonly unknown?: UnknownKeys } = {},
): Promise<TokenClaims> {
  const { tokens, seals } = ctx.ports;
  const first = tokens.verify(token, kind, options);
  if (!('unknownKid' in first)) return first;
  const { unknownKid } = first;
  const { admit, unknown } = options;
  const ageMs = ctx.ports.clock.now() - (unknown?.get(unknownKid) ?? Number.NaN);
  if (ageMs >= 0 && ageMs < UNKNOWN_MS) throw new Refusal('invalid_token');
  await admit?.();
  const key = await findSigningKey(ctx.db, unknownKid);
  const isOurs = key !== null && seals.fits(signingKeyFields(key.kid, key.publicKeyPem), key.seal);
  if (key !== null && !isOurs)
    seals.report(`the key ${key.kid} of the database signs tokens, and none of our processes has sealed it`);
  if (!isOurs) {
    unknown?.delete(unknownKid);
    unknown?.set(unknownKid, ctx.ports.clock.now());
    if (unknown !== undefined && unknown.size > MOST_UNKNOWN) unknown.delete(unknown.keys().next().value as string);
    throw new Refusal('invalid_token');
  }
  tokens.trust(key);
  const second = tokens.verify(token, kind, options);
  if ('unknownKid' in second) throw new Error(`the key ${key.kid} is not known after it was trusted`);
  return second;
}
