// Passwords with Argon2id. It runs on the libuv pool, where more than a few hashes starve everything else, so that at most two run at
// once, a short queue waits, and the rest is refused. Fulfils the port `passwords`; made in main/wire.ts.
import { randomBytes } from 'node:crypto';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import type { Passwords } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';

/**
 * OWASP's first choice for Argon2id, and the floor we allow. More is not taken by default: a hash costs the API about 6 ms of CPU and
 * 19 MiB, two at once 38 MiB, which leaves a small server its memory; a longer one would mostly make `/auth` easier to exhaust. A hash
 * carries its parameters, and a sign-in hashes anew what was made with others, so that raising them here is all it takes.
 */
const PARAMETERS = { algorithm: 2 /* Argon2id */, memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;
const SALT_BYTES = 16;
const AT_ONCE = 2;
const QUEUE = 32;

/** Passwords are compared in Unicode form NFC, as UTF-8, whole. */
const bytesOf = (password: string): Buffer => Buffer.from(password.normalize('NFC'), 'utf8');

/** What unknown users are verified against: of the form of a hash made today, and of no password. */
function hashOfNothing(): string {
  const { memoryCost, timeCost, parallelism, outputLen } = PARAMETERS;
  const [salt, tag] = [SALT_BYTES, outputLen].map((length) => randomBytes(length).toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${tag}`;
}

/** Makes the port. */
export function createPasswords(): Passwords {
  const gate = createGate(AT_ONCE, QUEUE);
  const dummy = hashOfNothing();
  return {
    hash: (password) => gate(() => hash(bytesOf(password), PARAMETERS)),
    verify: (stored, password) => gate(() => verify(stored, bytesOf(password))),
    async verifyNothing(password) {
      await gate(() => verify(dummy, bytesOf(password)));
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

/** Lets `atOnce` pieces of work run and `queued` wait, first come first served; refuses what is beyond with `overloaded`. */
function createGate(atOnce: number, queued: number): <T>(work: () => Promise<T>) => Promise<T> {
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
