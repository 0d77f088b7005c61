// Access and refresh tokens: JWT (RFC 7519) with EdDSA over Ed25519 (RFC 8037), typed as RFC 9068 types access tokens. The private key is
// made in this process and never leaves its memory; other processes verify with the public half that the flow stores for them. Fulfils the
// port `tokens`; made in main/wire.ts.
import { createHash, generateKeyPairSync } from 'node:crypto';
import { createSigner, createVerifier } from 'fast-jwt';
import type { Clock, TokenClaims, TokenKind, Tokens, VerificationKey } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';

const LIFETIME_SECONDS: Record<TokenKind, number> = { access: 900, refresh: 1_296_000 };
const TYP: Record<TokenKind, string> = { access: 'at+jwt', refresh: 'rt+jwt' };
const ISSUER = 'bursar';
const MAX_LENGTH = 4096;
/** Between the clocks of several servers; only for tokens from the future. */
const CLOCK_TOLERANCE_SECONDS = 5;
/** A key signs for 90 days at most (AUTH-7). */
const KEY_SIGNS_MS = 90 * 86_400_000;

/** 64 bytes of signature are 86 characters, the last of which carries 2 bits: with its other bits set it would be a second spelling. */
const FORM = /^([A-Za-z0-9_-]{1,512})\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{85}[AQgw]$/;
const KID = /^[A-Za-z0-9_-]{16}$/;
const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/;

type Verifiers = Record<TokenKind, (token: string) => TokenClaims & { nbf: number }>;
type OwnKey = VerificationKey & {
  createdAtMs: number;
  uselessAfterMs: number;
  signers: Record<TokenKind, (payload: object) => string>;
};

/**
 * Makes the port.
 * @param options.clock the service's clock: every time in a token is on it
 * @param options.audience what the tokens are for, the same in all processes on one database (the network's name)
 */
export function createTokens(options: { readonly clock: Clock; readonly audience: string }): Tokens {
  const { clock, audience } = options;
  const trusted = new Map<string, Verifiers>();
  let own: OwnKey | null = null;

  function signingKey(): OwnKey {
    const now = clock.now();
    if (own === null || now >= own.createdAtMs + KEY_SIGNS_MS) {
      own = makeKey(now);
      trusted.set(own.kid, verifiersOf(own.publicKeyPem, audience));
    }
    return own;
  }
  return {
    signingKey,
    trust(key) {
      if (!trusted.has(key.kid)) trusted.set(key.kid, verifiersOf(key.publicKeyPem, audience));
    },
    sign(kind, { sub, sid, jti, iat }) {
      return signingKey().signers[kind]({
        iss: ISSUER,
        aud: audience,
        sub,
        sid,
        jti,
        iat,
        nbf: iat,
        exp: iat + LIFETIME_SECONDS[kind],
      });
    },
    verify(token, kind, { ignoreExpiry = false } = {}) {
      const kid = kidOf(token, kind);
      const verifiers = trusted.get(kid);
      if (verifiers === undefined) return { unknownKid: kid };
      const claims = verified(verifiers[kind], token);
      checkTimes(claims, kind, clock.now() / 1000, ignoreExpiry);
      return { sub: claims.sub, sid: claims.sid, jti: claims.jti, iat: claims.iat, exp: claims.exp };
    },
  };
}

function makeKey(now: number): OwnKey {
  const pair = generateKeyPairSync('ed25519');
  const publicKeyPem = pair.publicKey.export({ type: 'spki', format: 'pem' }) as string;
  const kid = createHash('sha256').update(publicKeyPem).digest('base64url').slice(0, 16);
  const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const signer = (kind: TokenKind): ((payload: object) => string) =>
    createSigner({ key, algorithm: 'EdDSA', kid, header: { alg: 'EdDSA', typ: TYP[kind], kid } });
  const uselessAfterMs = now + KEY_SIGNS_MS + LIFETIME_SECONDS.refresh * 1000;
  return {
    kid,
    publicKeyPem,
    createdAtMs: now,
    uselessAfterMs,
    signers: { access: signer('access'), refresh: signer('refresh') },
  };
}

function verifiersOf(publicKeyPem: string, audience: string): Verifiers {
  const verifier = (kind: TokenKind): Verifiers[TokenKind] =>
    createVerifier({
      key: publicKeyPem,
      algorithms: ['EdDSA'],
      allowedIss: ISSUER,
      allowedAud: audience,
      checkTyp: TYP[kind],
      requiredClaims: ['iss', 'aud', 'sub', 'sid', 'jti', 'iat', 'nbf', 'exp'],
      // the times are compared on the service's clock, which in the sandbox is not the machine's
      ignoreExpiration: true,
      ignoreNotBefore: true,
      cache: false,
    });
  return { access: verifier('access'), refresh: verifier('refresh') };
}

/** The key's name out of a header that is exactly ours: anything else in it (jku, jwk, x5u, crit, another alg or typ) is refused unread. */
function kidOf(token: string, kind: TokenKind): string {
  const encoded = token.length <= MAX_LENGTH ? FORM.exec(token)?.[1] : undefined;
  if (encoded === undefined) throw new Refusal('invalid_token');
  let header: unknown;
  try {
    header = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'));
  } catch {
    throw new Refusal('invalid_token');
  }
  if (typeof header !== 'object' || header === null || Object.keys(header).length !== 3) throw new Refusal('invalid_token');
  const { alg, typ, kid } = header as Record<string, unknown>;
  if (alg !== 'EdDSA' || typ !== TYP[kind] || typeof kid !== 'string' || !KID.test(kid)) throw new Refusal('invalid_token');
  return kid;
}

function verified(verify: Verifiers[TokenKind], token: string): ReturnType<Verifiers[TokenKind]> {
  try {
    const claims = verify(token);
    const texts = [claims.sub, claims.sid, claims.jti].every((claim) => typeof claim === 'string' && IDENTIFIER.test(claim));
    const times = [claims.iat, claims.nbf, claims.exp].every((claim) => Number.isSafeInteger(claim));
    if (texts && times) return claims;
  } catch {
    // which check failed is nobody's business
  }
  throw new Refusal('invalid_token');
}

function checkTimes(
  claims: { iat: number; nbf: number; exp: number },
  kind: TokenKind,
  nowSeconds: number,
  ignoreExpiry: boolean,
): void {
  const inTime =
    claims.exp - claims.iat === LIFETIME_SECONDS[kind] &&
    Math.max(claims.iat, claims.nbf) <= nowSeconds + CLOCK_TOLERANCE_SECONDS;
  if (!inTime) throw new Refusal('invalid_token');
  if (!ignoreExpiry && nowSeconds >= claims.exp) throw new Refusal(kind === 'access' ? 'token_expired' : 'refresh_token_expired');
}
