// Passwords: the parameters, the limit of hashes at once, and that nobody learns from the time whether a username exists.
import { parseOptions } from '@node-rs/argon2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signIn } from '../../../src/flow/sign-in/sign-in.ts';
import { createPasswords } from '../../../src/outside/password.ts';
import { makeSignInSetup, PASSWORD, refusalOf, type SignInSetup } from './setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

describe('a password', () => {
  it('is hashed with Argon2id at the floor of OWASP or above, with a salt of its own', async () => {
    const passwords = createPasswords();
    const [a, b] = [await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)];
    expect(a).not.toBe(b);
    expect(parseOptions(a)).toMatchObject({
      algorithm: 2,
      memoryCost: 19_456,
      timeCost: 2,
      parallelism: 1,
      outputLen: 32,
      saltLen: 16,
    });
    expect(await passwords.verify(a, PASSWORD)).toBe(true);
    expect(await passwords.verify(a, `${PASSWORD} `)).toBe(false);
    expect(passwords.isOutdated(a)).toBe(false);
  });

  it('is the same however its accents are composed, and is never cut', async () => {
    const passwords = createPasswords();
    const long = `${'x'.repeat(127)}é`;
    const hash = await passwords.hash(long.normalize('NFC'));
    expect(await passwords.verify(hash, long.normalize('NFD'))).toBe(true);
    expect(await passwords.verify(hash, 'x'.repeat(127))).toBe(false);
  });

  it('waits in a queue of 32 behind two; beyond that the answer is overloaded with Retry-After', async () => {
    const passwords = createPasswords();
    const all = await Promise.allSettled(Array.from({ length: 40 }, () => passwords.verifyNothing(PASSWORD)));
    const refused = all.filter((one) => one.status === 'rejected');
    expect(refused).toHaveLength(40 - 34);
    expect(refused[0]?.reason).toMatchObject({ code: 'overloaded', httpStatus: 503, retryAfterSeconds: 1 });
    await passwords.verifyNothing(PASSWORD);
    const again = await Promise.allSettled(Array.from({ length: 34 }, () => passwords.verifyNothing(PASSWORD)));
    expect(again.every((one) => one.status === 'fulfilled')).toBe(true);
  });
});

describe('the time of a refusal', () => {
  const timed = async (username: string): Promise<number> => {
    const start = performance.now();
    expect(await refusalOf(() => signIn(setup.ctx, { username, password: 'not the password' }))).toBe('invalid_credentials');
    return performance.now() - start;
  };
  const median = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] as number;

  /**
   * Pairs taken one right after the other, in changing order, so that a slow spell of the machine falls on both; the median of the
   * differences is blind to outliers. A missing hash would make it as large as the median itself.
   */
  async function relativeDifference(): Promise<number> {
    const unknown: number[] = [];
    const wrong: number[] = [];
    for (let i = 0; i < 100; i++) {
      if (i % 2 === 0) unknown.push(await timed(`nobody-${i}`));
      wrong.push(await timed('shop'));
      if (i % 2 === 1) unknown.push(await timed(`nobody-${i}`));
    }
    return Math.abs(median(unknown.map((ms, i) => ms - (wrong[i] as number)))) / median(wrong);
  }

  it('does not tell an unknown username from a wrong password', async () => {
    for (let i = 0; i < 10; i++) await timed('shop');
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3 && least > 0.1; round++) least = Math.min(least, await relativeDifference());
    expect(least).toBeLessThanOrEqual(0.1);
  });
});
