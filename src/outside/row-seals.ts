// Seals rows of the database by a key outside it: HMAC-SHA-256 (RFC 2104) over one spelling of their fields.
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { RowSeals, SealFields } from '../core/row-seals.ts';

/**
 * @param key gives 32 bytes; asked when it is first needed
 * @param report is told once of each row whose seal does not fit
 * @param isKnown whether there is a key already
 */
export function createRowSeals(
  key: () => Uint8Array,
  report: (what: string) => void,
  isKnown: () => boolean = () => true,
): RowSeals {
  let known: KeyObject | null = null;
  const told = new Set<string>();
  function seal(fields: SealFields): Buffer {
    // a key that is bytes is made into one for each seal, which takes five times as long as the seal
    known ??= createSecretKey(key());
    return createHmac('sha256', known)
      .update(JSON.stringify(['bursar row 1', ...fields]))
      .digest();
  }
  return {
    seal,
    isKnown: () => known !== null || isKnown(),
    fits(fields, stored) {
      const right = seal(fields);
      return stored !== null && stored.length === right.length && timingSafeEqual(stored, right);
    },
    report(what) {
      if (told.has(what)) return;
      told.add(what);
      report(what);
    },
  };
}
