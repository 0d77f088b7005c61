// Guessing passwords: after so many failures of a username from one place, that place waits, even with the right password (behaviour §1).
// Called by the handler of /auth. The failures are rows, so this holds for all servers and after a restart.
import { createHash } from 'node:crypto';
import { usernameKey } from '../core/credentials.ts';
import { Refusal } from '../core/refusal.ts';
import { countFailure, type Failures, readFailures } from '../store/merchants/failed-sign-ins.ts';
import { signIn } from './sign-in.ts';
import type { SignInContext, TokenPair } from './token-pair.ts';

const WINDOW_MS = 15 * 60_000;

/**
 * {@link signIn}, unless too many from this place failed with this name in the 15 minutes that the first of them opened.
 * @param from.place where the call comes from, such as "192.0.2.1"
 * @param from.allowed how many failures are answered as such
 * Refused: as signIn does, and `rate_limited` with the seconds until the window has passed.
 */
export async function guardedSignIn(
  ctx: SignInContext,
  credentials: { readonly username: string; readonly password: string },
  from: { readonly place: string; readonly allowed: number },
): Promise<TokenPair> {
  const { clock } = ctx.ports;
  const name = usernameKey(credentials.username) ?? credentials.username;
  const key = createHash('sha256').update(`${from.place} ${name}`).digest();
  await refuseBlocked();
  let pair: TokenPair;
  try {
    pair = await signIn(ctx, credentials);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_credentials') throw error;
    const nowMs = clock.now();
    const counted = await countFailure(ctx.db, key, { nowMs, endsAtMs: nowMs + WINDOW_MS });
    // guesses that were under way side by side, here or at another server, get no more answers than guesses in a row
    throw counted.failures > from.allowed ? blocked(counted, nowMs, from.allowed) : error;
  }
  // failures that were counted while this one was verified weigh the same as if they had come before it: right and wrong look alike
  await refuseBlocked();
  return pair;

  async function refuseBlocked(): Promise<void> {
    const nowMs = clock.now();
    const counted = await readFailures(ctx.db, key, nowMs);
    if (counted !== null && counted.failures >= from.allowed) throw blocked(counted, nowMs, from.allowed);
  }
}

function blocked({ endsAtMs }: Failures, nowMs: number, allowed: number): Refusal {
  return new Refusal('rate_limited', {
    message: 'Too many failed sign-ins; try again later.',
    retryAfterSeconds: Math.ceil((endsAtMs - nowMs) / 1000),
    limit: { name: 'auth_failures', calls: allowed, seconds: WINDOW_MS / 1000 },
  });
}
