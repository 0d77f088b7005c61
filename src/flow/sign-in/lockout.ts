// Protection against guessed passwords: after too many failures of a username from one IP address, that address must wait, even with the
// right password (behaviour §1). The failures are rows, so this holds across all servers and restarts.
import { createHash } from 'node:crypto';
import { usernameKey } from '../../core/credentials.ts';
import { Refusal } from '../../core/refusal.ts';
import { countFailure, type Failures, readFailures } from '../../store/merchants/failed-sign-ins.ts';
import { signIn } from './sign-in.ts';
import type { SignInContext, TokenPair } from './token-pair.ts';

/** How long failures count, from the first of them on. */
export const FAILURES_COUNT_MS = 15 * 60_000;

/**
 * {@link signIn}, unless this IP address and username had too many failures in the 15 minutes that the first of them opened. Refused: as
 * signIn does, and `rate_limited` with the seconds until the window has passed.
 * @param from.ipAddress where the call comes from, such as "192.0.2.1"
 * @param from.allowed how many failures are answered as `invalid_credentials`
 */
export async function guardedSignIn(
  ctx: SignInContext,
  credentials: { readonly username: string; readonly password: string },
  from: { readonly ipAddress: string; readonly allowed: number },
): Promise<TokenPair> {
  const { clock } = ctx.ports;
  const name = usernameKey(credentials.username) ?? credentials.username;
  const key = createHash('sha256').update(`${from.ipAddress} ${name}`).digest();
  await refuseBlocked();
  let pair: TokenPair;
  try {
    pair = await signIn(ctx, credentials);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_credentials') throw error;
    const nowMs = clock.now();
    const counted = await countFailure(ctx.db, key, { nowMs, endsAtMs: nowMs + FAILURES_COUNT_MS });
    // guesses that run side by side, here or at another server, get no more answers than guesses in a row
    throw counted.failures > from.allowed ? blocked(counted, nowMs, from.allowed) : error;
  }
  // failures counted while this one was verified count as if they had come before it, so a right and a wrong password look alike
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
    limit: { name: 'auth_failures', calls: allowed, seconds: FAILURES_COUNT_MS / 1000 },
  });
}
