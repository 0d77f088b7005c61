// Guessing passwords: five failures of a username from one place, and that place waits, even with the right password (behaviour §1). Called by
// the handler of /auth.
import { usernameKey } from '../core/credentials.ts';
import { Refusal } from '../core/refusal.ts';
import { signIn } from '../flow/sign-in.ts';
import type { TokenPair } from '../flow/token-pair.ts';
import { addressKey } from './client-address.ts';
import type { Call } from './mount.ts';

export async function guardedSignIn(
  { ctx, house, request }: Call,
  credentials: { readonly username: string; readonly password: string },
): Promise<TokenPair> {
  const name = usernameKey(credentials.username) ?? credentials.username;
  const key = `${addressKey(request.ip)} ${name}`;
  const refuseBlocked = (): void => {
    const seconds = house.failures.blockedSeconds(key, house.now());
    if (seconds > 0) {
      throw new Refusal('rate_limited', { message: 'Too many failed sign-ins; try again later.', retryAfterSeconds: seconds });
    }
  };
  refuseBlocked();
  let pair: TokenPair;
  try {
    pair = await signIn(ctx, credentials);
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_credentials') {
      // guesses that were under way side by side get no more answers than guesses in a row
      refuseBlocked();
      house.failures.add(key, house.now());
    }
    throw error;
  }
  // failures that were counted while this one was verified weigh the same as if they had come before it: right and wrong look alike
  refuseBlocked();
  return pair;
}
