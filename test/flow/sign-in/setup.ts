// A database with one merchant, the real ports and a clock that the test moves, for the tests of signing in.
import { addMerchant } from '../../../src/flow/merchants/merchants.ts';
import type { SignInContext, TokenPair } from '../../../src/flow/sign-in/token-pair.ts';
import { createTokens } from '../../../src/outside/jwt.ts';
import { createPasswords } from '../../../src/outside/password.ts';
import { systemRng } from '../../../src/outside/rng.ts';
import { connect, type Database } from '../../../src/store/postgres/connect.ts';
import { SEALS } from '../../support/ports.ts';
import { freshDatabase } from '../../support/postgres.ts';

export const PASSWORD = 'correct horse battery';

export type SignInSetup = {
  readonly ctx: SignInContext;
  readonly url: string;
  readonly affiliateId: string;
  /** Moves the clock of every process of this test. */
  advance(seconds: number): void;
  /** Another process on the same database: its own pool, its own signing key. */
  anotherProcess(): SignInContext;
  end(): Promise<void>;
};

export async function makeSignInSetup(): Promise<SignInSetup> {
  const { url, db, drop } = await freshDatabase();
  let now = Date.now();
  const clock = { now: () => now };
  const passwords = createPasswords();
  const others: Database[] = [];
  const contextOn = (database: Database): SignInContext => ({
    db: database,
    ports: { clock, rng: systemRng, passwords, tokens: createTokens({ clock, audience: 'sandbox' }), seals: SEALS },
  });
  const ctx = contextOn(db);
  const { affiliateId } = await addMerchant(ctx, {
    username: 'Shop',
    password: PASSWORD,
    email: 'shop@example.com',
    businessName: 'The Shop',
  });
  return {
    ctx,
    url,
    affiliateId,
    advance(seconds) {
      now += seconds * 1000;
    },
    anotherProcess() {
      const other = connect({ url, role: 'bursar_app', maxConnections: 3, applicationName: 'test' });
      others.push(other);
      return contextOn(other);
    },
    async end() {
      for (const other of others) await other.close();
      await drop();
    },
  };
}

/** The error code of a refusal; `none` when there was no refusal. */
export async function refusalOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return 'none';
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === undefined) throw error;
    return code;
  }
}

export function headerOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[0] as string, 'base64url').toString('utf8')) as Record<string, unknown>;
}

export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString('utf8')) as Record<string, unknown>;
}

export const sameTokens = (a: TokenPair, b: TokenPair): boolean =>
  a.accessToken === b.accessToken && a.refreshToken === b.refreshToken;
