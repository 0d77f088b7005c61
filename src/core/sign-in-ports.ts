// What signing in needs of the outside: hashed passwords and signed tokens. See ports.ts.

/** Argon2id with a bounded number at once; every call may be refused with `overloaded`. */
export type Passwords = {
  /** A PHC string with the current parameters and a salt of its own. */
  hash(password: string): Promise<string>;
  verify(hash: string, password: string): Promise<boolean>;
  /** Costs what `verify` costs; for a username that does not exist. */
  verifyNothing(password: string): Promise<void>;
  /** Whether the hash was made with other parameters than today's. */
  isOutdated(hash: string): boolean;
};

/** `session`: what the portal's cookie holds. */
export type TokenKind = 'access' | 'refresh' | 'session';
/** How long a token counts (behaviour §2). */
export const LIFETIME_SECONDS: Readonly<Record<TokenKind, number>> = { access: 900, refresh: 1_296_000, session: 900 };
/** The same in words, for the tokens of the API. */
export const TOKEN_LIFETIMES: Readonly<Record<'access' | 'refresh', string>> = {
  access: `${LIFETIME_SECONDS.access / 60} minutes`,
  refresh: `${LIFETIME_SECONDS.refresh / 86_400} days`,
};
export type TokenClaims = {
  /** The subject: the merchant's affiliate_id. */
  readonly sub: string;
  /** The sign-in that the token belongs to. */
  readonly sid: string;
  /** The token's own identifier. */
  readonly jti: string;
  /** Seconds since 1970. */
  readonly iat: number;
  readonly exp: number;
};
/** The public half of a signing key. */
export type VerificationKey = { readonly kid: string; readonly publicKeyPem: string };

/** Signs and verifies tokens (JWT, EdDSA). The private key lives in this process only. */
export type Tokens = {
  /** This process's own key, replaced when it is old; its public half must be stored before a token signed with it goes out. */
  signingKey(): VerificationKey & { readonly createdAtMs: number; readonly uselessAfterMs: number };
  /** Accepts tokens signed by another process of ours. */
  trust(key: VerificationKey): void;
  /** Signs with {@link Tokens.signingKey}; the expiry follows from the kind. */
  sign(
    kind: TokenKind,
    claims: { readonly sub: string; readonly sid: string; readonly jti: string; readonly iat: number },
  ): string;
  /** Throws Refusal invalid_token, token_expired or refresh_token_expired; returns `unknownKid` when no trusted key has that id. */
  verify(
    token: string,
    kind: TokenKind,
    options?: { readonly ignoreExpiry?: boolean },
  ): TokenClaims | { readonly unknownKid: string };
};
