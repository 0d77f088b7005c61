// Passwords with Argon2id. It runs on the libuv pool, where more than a few hashes block everything else: at most two run at once, a short
// queue waits, and the rest is refused.
import { randomBytes } from 'node:crypto';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import type { Passwords } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';

/**
 * OWASP's first choice for Argon2id, and our minimum. Why not more: a hash costs the API about 6 ms of CPU and 19 MiB, two at once 38 MiB,
 * which leaves a small server its memory; a more expensive one would mostly make `/auth` easier to exhaust. A hash carries its parameters,
 * and a sign-in renews a hash made with others, so that raising them here is enough.
 */
const PARAMETERS = { algorithm: 2 /* Argon2id */, memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;
const SALT_BYTES = 16;
const AT_ONCE = 2;
const QUEUE = 32;

/** Passwords are compared as whole UTF-8 strings in Unicode form NFC. */
const bytesOf = (password: string): Buffer => Buffer.from(password.normalize('NFC'), 'utf8');

/** The hash that unknown users are verified against: it has today's form and belongs to no password. */
function hashOfNothing(): string {
  const { memoryCost, timeCost, parallelism, outputLen } = PARAMETERS;
  const [salt, tag] = [SALT_BYTES, outputLen].map((length) => randomBytes(length).toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${tag}`;
}

/** Makes the port. */
export function createPasswords(): Passwords {
  const queue = createQueue(AT_ONCE, QUEUE);
  const dummy = hashOfNothing();
  return {
    hash: (password) => queue(() => hash(bytesOf(password), PARAMETERS)),
    verify: (stored, password) => queue(() => verify(stored, bytesOf(password))),
    async verifyNothing(password) {
      await queue(() => verify(dummy, bytesOf(password)));
    },
    isOutdated(stored) {
      const made = parseOptions(stored);
      return (
        made.algorithm !== PARAMETERS.algorithm ||
        made.memoryCost !== PARAMETERS.memoryCost ||
        made.timeCost !== PARAMETERS.timeCost ||
        made.parallelism !== PARAMETERS.parallelism ||
        made.outputLen !== PARAMETERS.outputLen
      );
    },
  };
}

/** Lets `atOnce` calls run and `queued` wait, first come, first served; refuses all others with `overloaded`. */
function createQueue(atOnce: number, queued: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < atOnce) running += 1;
    else if (waiting.length < queued) await new Promise<void>((go) => waiting.push(go));
    else throw new Refusal('overloaded', { message: 'Too many sign-ins at once; try again.', retryAfterSeconds: 1 });
    try {
      return await work();
    } finally {
      // the place passes on without becoming free in between
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
