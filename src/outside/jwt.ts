// Access and refresh tokens, and the portal's sessions: JWT (RFC 7519) in JWS compact form (RFC 7515) with EdDSA over Ed25519 (RFC 8037), typed as RFC 9068 types
// access tokens. The private key is created in this process and never leaves its memory; other processes verify with the public half, which
// is stored for them. Every check of RFC 8725 is here: there is one algorithm, and each token has exactly one valid spelling.
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import type { Clock, TokenClaims, TokenKind, Tokens, VerificationKey } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';
import { LIFETIME_SECONDS } from '../core/sign-in-ports.ts';

const TYP: Record<TokenKind, string> = { access: 'at+jwt', refresh: 'rt+jwt', session: 'session+jwt' };
const ISSUER = 'bursar';
const MAX_LENGTH = 4096;
/** Tolerance between the clocks of several servers; only for tokens from the future. */
const CLOCK_TOLERANCE_SECONDS = 5;
/** A key signs for 90 days at most. */
const KEY_SIGNS_MS = 90 * 86_400_000;

/** 64 bytes of signature are 86 characters. */
const FORM = /^([A-Za-z0-9_-]{1,512})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/;
const KID = /^[A-Za-z0-9_-]{16}$/;
const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/;

type OwnKey = ReturnType<Tokens['signingKey']> & { readonly privateKey: KeyObject };
type Claims = { readonly [name: string]: unknown };

/**
 * Makes the port.
 * @param options.clock the service's clock: every time in a token is on it
 * @param options.audience what the tokens are for, the same in all processes on one database (the network's name)
 */
export function createTokens(options: { readonly clock: Clock; readonly audience: string }): Tokens {
  const { clock, audience } = options;
  const trusted = new Map<string, KeyObject>();
  let own: OwnKey | null = null;

  function trust({ kid, publicKeyPem }: VerificationKey): void {
    if (!trusted.has(kid)) trusted.set(kid, createPublicKey(publicKeyPem));
  }
  function signingKey(): OwnKey {
    const now = clock.now();
    if (own === null || now >= own.createdAtMs + KEY_SIGNS_MS) {
      own = makeKey(now);
      trust(own);
    }
    return own;
  }
  return {
    signingKey,
    trust,
    sign(kind, { sub, sid, jti, iat }) {
      const { kid, privateKey } = signingKey();
      const exp = iat + LIFETIME_SECONDS[kind];
      const input = `${encoded({ alg: 'EdDSA', typ: TYP[kind], kid })}.${encoded({ iss: ISSUER, aud: audience, sub, sid, jti, iat, nbf: iat, exp })}`;
      return `${input}.${sign(null, Buffer.from(input), privateKey).toString('base64url')}`;
    },
    verify(token, kind, { ignoreExpiry = false } = {}) {
      const [, header, payload, signature] = (token.length <= MAX_LENGTH ? FORM.exec(token) : null) ?? [];
      if (header === undefined || payload === undefined || signature === undefined) throw new Refusal('invalid_token');
      const kid = kidOf(decoded(header), kind);
      const key = trusted.get(kid);
      if (key === undefined) return { unknownKid: kid };
      const isSigned = verify(null, Buffer.from(token.slice(0, -87)), key, exactBytes(signature));
      if (!isSigned) throw new Refusal('invalid_token');
      return checked(decoded(payload), kind, { audience, nowSeconds: clock.now() / 1000, ignoreExpiry });
    },
  };
}

function makeKey(now: number): OwnKey {
  const pair = generateKeyPairSync('ed25519');
  const publicKeyPem = pair.publicKey.export({ type: 'spki', format: 'pem' }) as string;
  return {
    kid: createHash('sha256').update(publicKeyPem).digest('base64url').slice(0, 16),
    publicKeyPem,
    createdAtMs: now,
    uselessAfterMs: now + KEY_SIGNS_MS + LIFETIME_SECONDS.refresh * 1000,
    privateKey: pair.privateKey,
  };
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The bytes of base64url in its one spelling: the bits that fill its last character are zero. */
function exactBytes(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text) throw new Refusal('invalid_token');
  return bytes;
}

/** A JSON object as we write it: no duplicate names, no white space, no unnecessary escapes. */
function decoded(part: string): Claims {
  const text = exactBytes(part).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal('invalid_token');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.stringify(value) !== text)
    throw new Refusal('invalid_token');
  return value as Claims;
}

/** The key's id from a header that is exactly ours: anything else in it (jku, jwk, x5u, crit, another alg or typ) is refused unread. */
function kidOf(header: Claims, kind: TokenKind): string {
  const { alg, typ, kid, ...more } = header;
  const isOurs = alg === 'EdDSA' && typ === TYP[kind] && typeof kid === 'string' && KID.test(kid);
  if (!isOurs || Object.keys(more).length > 0) throw new Refusal('invalid_token');
  return kid;
}

function checked(
  claims: Claims,
  kind: TokenKind,
  by: { readonly audience: string; readonly nowSeconds: number; readonly ignoreExpiry: boolean },
): TokenClaims {
  const { iss, aud, sub, sid, jti, iat, nbf, exp } = claims;
  const texts = [sub, sid, jti].every((claim) => typeof claim === 'string' && IDENTIFIER.test(claim));
  const times = [iat, nbf, exp].every((claim) => Number.isSafeInteger(claim));
  if (iss !== ISSUER || aud !== by.audience || !texts || !times) throw new Refusal('invalid_token');
  const read = { sub, sid, jti, iat, exp } as TokenClaims;
  const begins = Math.max(read.iat, nbf as number);
  if (read.exp - read.iat !== LIFETIME_SECONDS[kind] || begins > by.nowSeconds + CLOCK_TOLERANCE_SECONDS)
    throw new Refusal('invalid_token');
  if (!by.ignoreExpiry && by.nowSeconds >= read.exp)
    throw new Refusal(kind === 'refresh' ? 'refresh_token_expired' : 'token_expired');
  return read;
}
