// Cryptographic randomness, from the operating system by way of OpenSSL.
import { randomFillSync } from 'node:crypto';
import type { Rng } from '../core/ports.ts';

// one call for many small draws: every create needs new identifiers
const pool = new Uint8Array(4096);
let used = pool.length;

export const systemRng: Rng = {
  bytes(length) {
    if (length > pool.length / 4) return randomFillSync(new Uint8Array(length));
    if (used + length > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const drawn = pool.slice(used, used + length);
    pool.fill(0, used, used + length);
    used += length;
    return drawn;
  },
};
