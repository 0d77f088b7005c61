// What a checkout link names its transaction by: the transaction's id under a key outside the database, one block of AES-128 (FIPS 197). So links
// need no column, those of older transactions work too, and nobody can guess one: another text decrypts to an id that does not exist.
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { bytesOfText, textOfBytes } from '../core/ids.ts';
import type { CheckoutTokens } from '../core/judge/checkout.ts';
import type { RowSeals } from '../core/row-seals.ts';

const PREFIX = 'txn_';
const ALGORITHM = 'aes-128-ecb';
const KEY_BYTES = 16;

/** @param seals their key is needed when the first link is made or opened; another key makes other links, and opens none of these */
export function createCheckoutTokens(seals: Pick<RowSeals, 'seal'>): CheckoutTokens {
  let made: Uint8Array | null = null;
  function key(): Uint8Array {
    made ??= seals.seal(['the key of checkout links']).subarray(0, KEY_BYTES);
    return made;
  }
  return {
    tokenOf(transactionId) {
      const bytes = transactionId.startsWith(PREFIX) ? bytesOfText(transactionId.slice(PREFIX.length)) : null;
      if (bytes === null) throw new Error(`${transactionId} is no id of a transaction`);
      const cipher = createCipheriv(ALGORITHM, key(), null).setAutoPadding(false);
      return textOfBytes(Buffer.concat([cipher.update(bytes), cipher.final()]));
    },
    transactionIdOf(token) {
      const bytes = bytesOfText(token);
      if (bytes === null) return null;
      const decipher = createDecipheriv(ALGORITHM, key(), null).setAutoPadding(false);
      return PREFIX + textOfBytes(Buffer.concat([decipher.update(bytes), decipher.final()]));
    },
  };
}
