// Seals what must not be readable in the database and in our folder: AES-256-GCM with a random nonce (NIST SP 800-38D), bound to what it is about.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Sealing } from '../core/ports.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** What is sealed begins with this, and no bank file does. */
const MARK = Buffer.from('sealed1:', 'latin1');

/** @param key 32 bytes. `open` throws for another key, other bytes or another `about` */
export function createSealing(key: Uint8Array): Sealing {
  return {
    seal(plain, about) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(about));
      return Buffer.concat([MARK, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, about) {
      const bytes = Buffer.from(sealed);
      // whoever can write here without the key could have written it
      if (!bytes.subarray(0, MARK.length).equals(MARK)) throw new Error(`${about} is not sealed, and there is a key`);
      const nonce = bytes.subarray(MARK.length, MARK.length + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(bytes.subarray(MARK.length + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    },
  };
}

/** Seals nothing: in the sandbox, and where there is no key because there is no bank. */
export const unsealed: Sealing = { seal: (plain) => plain, open: (sealed) => sealed };
